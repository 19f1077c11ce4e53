// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group runs a step, at graph level? The least loaded group runs
// the whole step, unless the caller names a group, or the graph changes state:
// then the leader does. hooks/ makes the executor in TensorFlow's NewExecutor.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_GRAPH_LEVEL_GRAPH_LEVEL_EXECUTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_GRAPH_LEVEL_GRAPH_LEVEL_EXECUTOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/step/stock_executor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Makes an executor of `graph` for `leader`, which is params.device, with one
// stock executor for each group. The stock executors share their kernels.
absl::Status NewGraphLevelExecutor(const LocalExecutorParams& params,
                                   const Graph& graph, GroupLeader* leader,
                                   const Options& options,
                                   const MakeStockExecutor& make_stock,
                                   std::unique_ptr<Executor>* out);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_GRAPH_LEVEL_GRAPH_LEVEL_EXECUTOR_H_
