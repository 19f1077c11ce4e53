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
//
// And they are awake where it counts. A step forks into its branches and joins
// them some hundred microseconds later; to wake a thread that sleeps can take
// as long. So some of the idle threads look for work for a while before they
// sleep.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/stream_group.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace multistream {

// Threads that run closures in the order in which they were given.
class StepThreads {
 public:
  // `most_looking`: of `count`, how many may look for work instead of sleeping.
  StepThreads(int count, int most_looking);
  // Runs all closures first.
  ~StepThreads();

  // Those of the process. Never deleted.
  static StepThreads* Get();

  void Schedule(std::function<void()> closure);

  // Where a step with these arguments on `group` runs its closures:
  //   as the caller wants, if it wants all kernels run in its own thread, or
  //   with TF_GPU_THREAD_MODE=global;
  //   gpu_private: on TF_GPU_THREAD_COUNT threads of the group;
  //   gpu_shared: on as many threads for all groups;
  //   else on the threads of the process.
  // `groups`: how many groups the step's ops have, of which `group` is the
  // first.
  static Executor::Args::Runner RunnerFor(const Executor::Args& args,
                                          const StreamGroup* group,
                                          int groups = 1);

 private:
  // Those of a group, or of all groups (nullptr). Never deleted.
  static StepThreads* Of(const StreamGroup* group, int count);

  void Run();
  // Whether there may be something to do. False after a while.
  bool Look() const;

  const int most_looking_;
  // Of closures_, for who looks without the lock.
  std::atomic<size_t> waiting_{0};
  absl::Mutex mu_;
  absl::CondVar given_;
  std::deque<std::function<void()>> closures_ ABSL_GUARDED_BY(mu_);
  size_t looking_ ABSL_GUARDED_BY(mu_) = 0;
  size_t sleeping_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<bool> ends_{false};
  std::vector<std::unique_ptr<Thread>> threads_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_THREADS_H_
