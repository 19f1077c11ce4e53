// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// When did a group have a step to run? From the moment when the group got the
// step until its stream has completed it. Both executors call TracedStep.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_TRACED_STEP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_TRACED_STEP_H_

#include <cstdint>
#include <string>
#include <utility>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow {
namespace multistream {

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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_TRACED_STEP_H_
