// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/process_stream_file.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {

absl::StatusOr<std::unique_ptr<StreamFile>> LoadProcessStreamFile(
    const Options& options) {
  if (!options.any_node_level || options.stream_file.empty()) return nullptr;
  int most = 1;
  for (int count : options.group_counts) most = std::max(most, count);
  absl::StatusOr<StreamFile> loaded = LoadStreamFile(options.stream_file, most);
  if (!loaded.ok()) return loaded.status();
  return std::make_unique<StreamFile>(*std::move(loaded));
}

absl::StatusOr<const StreamFile*> ProcessStreamFile(const Options& options) {
  static absl::Mutex mu(absl::kConstInit);
  static const StreamFile* file = nullptr;
  absl::MutexLock lock(&mu);
  if (file == nullptr) {
    absl::StatusOr<std::unique_ptr<StreamFile>> loaded =
        LoadProcessStreamFile(options);
    if (!loaded.ok()) return loaded.status();
    file = loaded->release();
  }
  return file;
}

void LogStreamFileOnce(const StreamFile& file, const NodePlan& plan) {
  static std::atomic<bool> logged{false};
  for (const NodePlan::Node& node : plan.nodes) {
    if (node.why != "file") continue;
    if (!logged.exchange(true)) {
      LOG(INFO) << "Stream groups from a file:\n" << file.Summary();
    }
    return;
  }
}

}  // namespace multistream
}  // namespace tensorflow
