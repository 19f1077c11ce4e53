// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which executor runs a graph: the graph-level one, the node-level one or
// TensorFlow's own? replaced_functions.cc and source_hooks.cc ask where
// TensorFlow makes one.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EXECUTOR_CHOICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EXECUTOR_CHOICE_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Replaces NewExecutor, with which sessions and functions make executors.
absl::Status NewExecutorOnGroups(const std::string& executor_type,
                                 const LocalExecutorParams& params,
                                 const Graph& graph,
                                 std::unique_ptr<Executor>* out_executor);

// Replaces NewLocalExecutor, which is `stock`. A worker of TensorFlow's
// distributed runtime (GraphMgr) calls it for the executors of a session's
// graph, and ExecutorFactory for executors of the default type.
absl::Status NewLocalExecutorOnGroups(
    const LocalExecutorParams& params, const Graph& graph,
    Executor** out_executor,
    absl::FunctionRef<absl::Status(const LocalExecutorParams&, const Graph&,
                                   Executor**)>
        stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EXECUTOR_CHOICE_H_
