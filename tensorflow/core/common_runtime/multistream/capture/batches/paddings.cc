// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/paddings.h"

#include <algorithm>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

// The smallest of the sizes that has room; nullopt if the size is one of them,
// or larger than all.
std::optional<int64_t> SizeAbove(int64_t size, const std::vector<int>& sizes) {
  const auto next = std::lower_bound(sizes.begin(), sizes.end(), size);
  if (next == sizes.end() || *next == size) return std::nullopt;
  return *next;
}

// Calls `visit` with the shapes of all inputs that are not variables, and with
// what else has one element for each of them.
template <class Shapes, class Entries, class Visit>
void ForEachInput(Shapes& shapes, Entries& have, const Visit& visit) {
  for (size_t i = 0; i < shapes.received.size(); ++i) {
    visit(shapes.received[i], have.received[i], i, /*is_received=*/true);
  }
  for (size_t i = 0; i < shapes.arguments.size(); ++i) {
    visit(shapes.arguments[i], have.arguments[i], i, /*is_received=*/false);
  }
}

}  // namespace

TensorShape Padding::WithRows(const TensorShape& shape) const {
  TensorShape padded = shape;
  if (rows > 0 && padded.dims() > 0) padded.set_dim(0, rows);
  return padded;
}

Paddings::Paddings(const Graph& graph, std::vector<int> batches,
                   std::vector<int> lengths)
    : rows_(graph),
      lengths_(graph),
      row_sizes_(std::move(batches)),
      length_sizes_(std::move(lengths)) {}

std::shared_ptr<const Padding> Paddings::Of(std::string key,
                                            const StepShapes& shapes) {
  for (const auto& [type, shape] : shapes.variables) {
    absl::StrAppend(&key, static_cast<int>(type), shape.DebugString());
  }
  HaveEntries have;
  {
    absl::MutexLock lock(&mu_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
    if (NoteEntries(shapes)) known_.clear();
    have = have_;
  }
  std::shared_ptr<Padding> made = NewPadding(shapes, have);
  absl::MutexLock lock(&mu_);
  if (made != nullptr && made->masks != nullptr) {
    if (masks_ == nullptr || *masks_ != *made->masks) masks_ = made->masks;
    made->masks = masks_;
  }
  if (known_.size() >= kMostShapes) known_.clear();
  // More may have entries by now.
  if (have.received != have_.received || have.arguments != have_.arguments) {
    return made;
  }
  return known_.try_emplace(key, std::move(made)).first->second;
}

bool Paddings::NoteEntries(const StepShapes& shapes) {
  if (!first_) {
    first_ = shapes;
    have_ = {std::vector<bool>(shapes.received.size(), false),
             std::vector<bool>(shapes.arguments.size(), false)};
    return false;
  }
  const StepShapes& earlier = *first_;
  bool is_new = false;
  ForEachInput(shapes, have_,
               [&](const TensorShape& shape, std::vector<bool>::reference has,
                   size_t i, bool is_received) {
                 const TensorShape& first =
                     is_received ? earlier.received[i] : earlier.arguments[i];
                 if (has || shape.dims() < 2 || first.dims() != shape.dims() ||
                     first.dim_size(1) == shape.dim_size(1)) {
                   return;
                 }
                 has = true;
                 is_new = true;
               });
  return is_new;
}

std::shared_ptr<Padding> Paddings::NewPadding(const StepShapes& shapes,
                                              const HaveEntries& have) const {
  auto padding = std::make_shared<Padding>();
  padding->variables = shapes.variables;
  padding->have = have;
  StepShapes longer = shapes;
  absl::StatusOr<bool> is_longer = PadLength(&longer, padding.get());
  const absl::StatusOr<bool> has_rows = PadRows(longer, padding.get());
  for (const auto& [status, variable, what] :
       {std::tuple(is_longer.status(), kCaptureLengthsVariable, "length"),
        std::tuple(has_rows.status(), kCaptureBatchesVariable, "batch")}) {
    if (status.ok()) continue;
    absl::StrAppend(&padding->why_not, padding->why_not.empty() ? "" : "; ",
                    "its ", what, " is not padded: ", status.message());
    LOG_FIRST_N(WARNING, 10)
        << "Multi-stream: " << variable
        << " has no effect on a step: " << status.message();
  }
  const bool is_padded = is_longer.value_or(false) || has_rows.value_or(false);
  return is_padded || !padding->why_not.empty() ? padding : nullptr;
}

absl::StatusOr<bool> Paddings::PadLength(StepShapes* shapes,
                                         Padding* padding) const {
  const auto any = [](const std::vector<bool>& has) {
    return absl::c_linear_search(has, true);
  };
  if (length_sizes_.empty() ||
      !(any(padding->have.received) || any(padding->have.arguments))) {
    return false;
  }
  TF_ASSIGN_OR_RETURN(const int64_t length,
                      PaddedLengths::Length(*shapes, padding->have));
  const std::optional<int64_t> longer = SizeAbove(length, length_sizes_);
  if (!longer) return false;
  TF_ASSIGN_OR_RETURN(PaddedLength found,
                      lengths_.Pad(*shapes, padding->have, *longer));
  padding->length = *longer;
  padding->masks =
      std::make_shared<const std::vector<NodeMask>>(std::move(found.masks));
  for (SizedResult& it : found.results) {
    padding->results.push_back({std::move(it.shape), std::move(it.padded),
                                it.blocks > 0, std::max<int64_t>(it.blocks, 1),
                                length, *longer});
  }
  padding->mask = Tensor(DT_BOOL, {*longer});
  for (int64_t i = 0; i < *longer; ++i) {
    padding->mask.flat<bool>()(i) = i < length;
  }
  ForEachInput(*shapes, padding->have,
               [&](TensorShape& shape, bool has, size_t, bool) {
                 if (has) shape.set_dim(1, *longer);
               });
  return true;
}

absl::StatusOr<bool> Paddings::PadRows(const StepShapes& shapes,
                                       Padding* padding) const {
  if (row_sizes_.empty()) return false;
  TF_ASSIGN_OR_RETURN(const int64_t batch, IndependentRows::Batch(shapes));
  const std::optional<int64_t> rows = SizeAbove(batch, row_sizes_);
  if (!rows) return false;
  TF_ASSIGN_OR_RETURN(std::vector<SizedResult> found, rows_.Pad(shapes, *rows));
  padding->rows = *rows;
  const bool is_longer = !padding->results.empty();
  if (!is_longer) padding->results.resize(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    PaddedResult& result = padding->results[i];
    if (!is_longer) result.shape = found[i].shape;
    result.padded = found[i].padded;
    result.is_padded |= found[i].blocks > 0;
  }
  return true;
}

}  // namespace tensorflow::multistream
