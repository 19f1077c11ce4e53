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

// When had a group a step to run? From when it was given the step until its
// stream has completed it. Both executors ask.

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

// `done`, to be called when all of a step that begins now is enqueued. If there
// is a trace, the step will be in it, under `name`.
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
