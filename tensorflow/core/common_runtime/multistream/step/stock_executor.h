/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// What runs the ops of a graph? TensorFlow's own executors, of which those of
// graph level and node level make as many as they need.

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

// Makes TensorFlow's own executor of the type asked for.
using MakeStockExecutor = std::function<absl::Status(
    const LocalExecutorParams&, const Graph&, std::unique_ptr<Executor>*)>;

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_
