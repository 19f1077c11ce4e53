// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream file gives this process's nodes their groups? The first executor
// reads the file for all; attach and the programs' interface check it before.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PROCESS_STREAM_FILE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PROCESS_STREAM_FILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"

namespace tensorflow {
namespace multistream {

// The file that TF_STREAM_FROM_FILE names; nullptr if there is none or node
// level is off. An error names the file and the line.
absl::StatusOr<std::unique_ptr<StreamFile>> LoadProcessStreamFile(
    const Options& options);
// The same, but read once and shared, as the file counts the nodes of all
// executors. The first executor reads it: all groups exist by then.
absl::StatusOr<const StreamFile*> ProcessStreamFile(const Options& options);

// If a node of `plan` has its group from the file, logs the file's summary,
// once per process.
void LogStreamFileOnce(const StreamFile& file, const NodePlan& plan);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PROCESS_STREAM_FILE_H_
