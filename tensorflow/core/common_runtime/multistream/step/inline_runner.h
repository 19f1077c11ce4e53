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

// Where does a step go on after an asynchronous op, if the caller wants its ops
// in its own thread?
//
// Not where the op is done: often in the only thread that runs all callbacks of
// streams. There an op may wait for a variable that another asynchronous op has
// locked, until a callback says that it is done.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_INLINE_RUNNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_INLINE_RUNNER_H_

#include <memory>
#include <thread>
#include <utility>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow {
namespace multistream {

// StepThreads::RunnerFor. But if the caller's thread is to run the step,
// closures that come from other threads run on the threads of the process.
inline Executor::Args::Runner RunnerOfStep(
    const Executor::Args& args, StreamGroup* group, int groups,
    std::shared_ptr<StepThreads> of_session) {
  Executor::Args::Runner run =
      StepThreads::RunnerFor(args, group, groups, std::move(of_session));
  if (!args.run_all_kernels_inline) return run;
  return [group, run = std::move(run), caller = std::this_thread::get_id()](
             Executor::Args::Closure closure) {
    if (std::this_thread::get_id() == caller) {
      run(std::move(closure));
    } else {
      StepThreads::Get()->Schedule(group, std::move(closure));
    }
  };
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_INLINE_RUNNER_H_
