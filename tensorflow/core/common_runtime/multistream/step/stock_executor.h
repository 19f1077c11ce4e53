// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What runs the ops of a graph? Stock TensorFlow executors. The graph-level and
// node-level executors make as many of them as they need, and trace when a
// group had a step to run: from the moment when the group got the step until
// its stream has completed it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Makes a stock executor of the type that the session asks for.
using MakeStockExecutor = std::function<absl::Status(
    const LocalExecutorParams&, const Graph&, std::unique_ptr<Executor>*)>;

// Call at the beginning of a step; call the result when the whole step is
// enqueued. It calls `done`, and with tracing on records the step as `name`.
inline Executor::DoneCallback TracedStep(StreamGroup* group,
                                         const std::string& name,
                                         Executor::DoneCallback done) {
  const int64_t begin = Trace::Begin();
  if (begin == 0) return done;
  return [group, name, begin, done = std::move(done)](const absl::Status& s) {
    group->WhenCompleted([group, name, begin] {
      Trace::Get()->Record({TraceKind::kStep, group->gpu(), group->index(),
                            begin, 0, 0, "", name});
    });
    done(s);
  };
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STOCK_EXECUTOR_H_
