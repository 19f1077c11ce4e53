// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a step run if its nodes have stream groups of their own? attach
// makes this executor in TensorFlow's NewExecutor. The executor runs each step
// by the plan that plan_tuner.h chooses.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_EXECUTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_EXECUTOR_H_

#include <memory>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/step/stock_executor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Runs steps with stock executors that `make_stock` makes for the visible
// device, `leader`'s; node_plan.h decides the nodes' groups. InvalidArgument
// names a node whose group does not exist.
absl::Status NewNodeLevelExecutor(const LocalExecutorParams& params,
                                  const Graph& graph, GroupLeader* leader,
                                  const Options& options,
                                  const MakeStockExecutor& make_stock,
                                  std::unique_ptr<Executor>* out);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_EXECUTOR_H_
