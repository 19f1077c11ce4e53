// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What runs the ops of a graph? Stock TensorFlow executors. The graph-level and
// node-level executors make as many of them as they need.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Makes a stock executor of the type that the session asks for.
using MakeStockExecutor = std::function<absl::Status(
    const LocalExecutorParams&, const Graph&, std::unique_ptr<Executor>*)>;

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_
