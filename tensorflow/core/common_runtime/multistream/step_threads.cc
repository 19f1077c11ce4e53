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

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/options.h"
#include "tensorflow/core/platform/cpu_info.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr absl::Duration kLookFor = absl::Milliseconds(1);
constexpr int kLooksAtOnce = 64;

}  // namespace

StepThreads::StepThreads(int count, int most_looking)
    : most_looking_(most_looking) {
  for (int i = 0; i < count; ++i) {
    threads_.emplace_back(Env::Default()->StartThread(
        ThreadOptions(), "tf_multistream", [this] { Run(); }));
  }
}

StepThreads::~StepThreads() {
  {
    absl::MutexLock lock(&mu_);
    ends_.store(true, std::memory_order_release);
    given_.SignalAll();
  }
  threads_.clear();  // waits for them
}

StepThreads* StepThreads::Get() {
  static StepThreads* threads = [] {
    // As many as can run: more of them only wait for a lock of the driver.
    const int count = std::max(4, port::MaxParallelism());
    // A step on one group needs another thread now and then, one on several
    // groups one for each of them at the same time.
    const absl::StatusOr<Options>& options = EnvironmentOptions();
    const bool node_level = options.ok() && options->node_level;
    return new StepThreads(
        count, node_level ? std::max(1, port::MaxParallelism() / 2) : 1);
  }();
  return threads;
}

void StepThreads::Schedule(std::function<void()> closure) {
  absl::MutexLock lock(&mu_);
  closures_.push_back(std::move(closure));
  waiting_.store(closures_.size(), std::memory_order_release);
  if (sleeping_ > 0 && closures_.size() > looking_) given_.Signal();
}

StepThreads* StepThreads::Of(const StreamGroup* group, int count) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* all = new absl::flat_hash_map<const StreamGroup*, StepThreads*>;
  absl::MutexLock lock(&mu);
  StepThreads*& threads = (*all)[group];
  if (threads == nullptr) threads = new StepThreads(count, 1);
  return threads;
}

Executor::Args::Runner StepThreads::RunnerFor(const Executor::Args& args,
                                              const StreamGroup* group,
                                              int groups) {
  const absl::StatusOr<Options>& options = EnvironmentOptions();
  const ThreadMode mode =
      options.ok() ? options->thread_mode : ThreadMode::kProcess;
  if (args.run_all_kernels_inline || mode == ThreadMode::kGlobal) {
    return args.runner;
  }
  StepThreads* threads = mode == ThreadMode::kProcess ? Get()
                         : mode == ThreadMode::kShared
                             ? Of(nullptr, options->thread_count)
                             : Of(group, options->thread_count * groups);
  return [threads](Executor::Args::Closure closure) {
    threads->Schedule(std::move(closure));
  };
}

void StepThreads::Run() {
  bool has_looked = false;
  absl::MutexLock lock(&mu_);
  while (true) {
    if (!closures_.empty()) {
      std::function<void()> closure = std::move(closures_.front());
      closures_.pop_front();
      waiting_.store(closures_.size(), std::memory_order_release);
      mu_.Unlock();
      closure();
      closure = nullptr;
      mu_.Lock();
      has_looked = false;
    } else if (ends_.load(std::memory_order_acquire)) {
      return;
    } else if (!has_looked && looking_ < static_cast<size_t>(most_looking_)) {
      ++looking_;
      mu_.Unlock();
      const bool found = Look();
      mu_.Lock();
      --looking_;
      has_looked = !found;
    } else {
      ++sleeping_;
      given_.Wait(&mu_);
      --sleeping_;
      has_looked = false;
    }
  }
}

bool StepThreads::Look() const {
  const absl::Time end = absl::Now() + kLookFor;
  do {
    for (int i = 0; i < kLooksAtOnce; ++i) {
      if (waiting_.load(std::memory_order_acquire) > 0 ||
          ends_.load(std::memory_order_acquire)) {
        return true;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    sched_yield();
  } while (absl::Now() < end);
  return false;
}

}  // namespace multistream
}  // namespace tensorflow
