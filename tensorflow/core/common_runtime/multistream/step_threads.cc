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

#include "tensorflow/core/common_runtime/multistream/step_threads.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace multistream {

StepThreads::StepThreads(int count)
    : pool_(Env::Default(), "tf_multistream", count) {}

StepThreads* StepThreads::Get() {
  // As many as can run: more of them only wait for a lock of the driver.
  static StepThreads* threads =
      new StepThreads(std::max(4, port::MaxParallelism()));
  return threads;
}

void StepThreads::Schedule(std::function<void()> closure) {
  {
    absl::MutexLock lock(&mu_);
    closures_.push_back(std::move(closure));
  }
  pool_.Schedule([this] { RunOldest(); });
}

Executor::Args::Runner StepThreads::RunnerFor(const Executor::Args& args) {
  if (args.run_all_kernels_inline) return args.runner;
  return [threads = Get()](Executor::Args::Closure closure) {
    threads->Schedule(std::move(closure));
  };
}

void StepThreads::RunOldest() {
  std::function<void()> closure;
  {
    absl::MutexLock lock(&mu_);
    closure = std::move(closures_.front());
    closures_.pop_front();
  }
  closure();
}

}  // namespace multistream
}  // namespace tensorflow
