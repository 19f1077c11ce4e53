// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/padding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {

TensorShape Padding::Padded(const TensorShape& shape) const {
  TensorShape padded = shape;
  if (padded.dims() > 0) padded.set_dim(0, rows);
  return padded;
}

Paddings::Paddings(const Graph& graph, std::vector<int> batches)
    : rows_(graph), batches_(std::move(batches)) {}

std::shared_ptr<const Padding> Paddings::Of(std::string key,
                                            const StepShapes& shapes) {
  for (const auto& [type, shape] : shapes.variables) {
    absl::StrAppend(&key, static_cast<int>(type), shape.DebugString());
  }
  {
    absl::MutexLock lock(&mu_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
  }
  std::shared_ptr<const Padding> made = NewPadding(shapes);
  absl::MutexLock lock(&mu_);
  if (known_.size() >= kMostShapes) known_.clear();
  return known_.try_emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const Padding> Paddings::NewPadding(
    const StepShapes& shapes) const {
  auto padding = std::make_shared<Padding>();
  padding->variables = shapes.variables;
  const absl::StatusOr<int64_t> batch = IndependentRows::Batch(shapes);
  absl::Status status = batch.status();
  if (status.ok()) {
    const auto next =
        std::lower_bound(batches_.begin(), batches_.end(), *batch);
    if (next == batches_.end() || *next == *batch) return nullptr;
    padding->rows = *next;
    auto results = rows_.Pad(shapes, padding->rows);
    status = results.status();
    if (status.ok()) padding->results = *std::move(results);
  }
  if (!status.ok()) {
    padding->why_not =
        absl::StrCat("its batch is not padded: ", status.message());
    LOG_FIRST_N(WARNING, 10)
        << "Multi-stream: " << kCaptureBatchesVariable
        << " has no effect on a step: " << status.message();
  }
  return padding;
}

}  // namespace multistream
}  // namespace tensorflow
