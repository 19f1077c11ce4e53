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

// Which threads launch the ops of steps on stream groups?
//
// Not those of the session. A thread of TensorFlow's pools runs what it has
// given itself last before all else: with as many clients as threads, what came
// from outside waited for seconds. These threads take what came first.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/platform/threadpool.h"

namespace tensorflow {
namespace multistream {

// Threads that run closures in the order in which they were given.
class StepThreads {
 public:
  explicit StepThreads(int count);

  // Those of the process. Never deleted.
  static StepThreads* Get();

  void Schedule(std::function<void()> closure);

  // Where a step with these arguments runs its closures: on the threads of the
  // process, unless the caller wants all kernels run in its own thread.
  static Executor::Args::Runner RunnerFor(const Executor::Args& args);

 private:
  void RunOldest();

  absl::Mutex mu_;
  std::deque<std::function<void()>> closures_ ABSL_GUARDED_BY(mu_);
  // Each of its tasks runs the oldest closure, so their own order is nothing
  // to any closure. Last: it runs all tasks before it is gone.
  thread::ThreadPool pool_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_
