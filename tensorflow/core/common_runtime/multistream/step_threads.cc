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

thread_local const StepThreads* of_this_thread = nullptr;

}  // namespace

StepThreads::StepThreads(int count, int most_looking, int most_of_group,
                         absl::Duration blocked)
    : most_looking_(most_looking),
      most_of_group_(most_of_group),
      blocked_(blocked),
      running_(count) {
  auto start = [this](std::function<void()> run) {
    threads_.emplace_back(Env::Default()->StartThread(
        ThreadOptions(), "tf_multistream", std::move(run)));
  };
  absl::MutexLock lock(&mu_);
  for (Running& running : running_) {
    start([this, &running] { Run(&running); });
  }
  // With fewer threads no group can have too many.
  if (most_of_group < count) start([this] { Watch(); });
}

StepThreads::~StepThreads() {
  {
    absl::MutexLock lock(&mu_);
    ends_.store(true, std::memory_order_release);
    given_.SignalAll();
    watch_.Signal();
  }
  threads_.clear();  // waits for them
}

StepThreads* StepThreads::Get() {
  static StepThreads* threads = [] {
    // As many as can run: more of them only wait for a lock of the driver.
    const int count = std::max(4, port::MaxParallelism());
    // A step on one group needs another thread now and then, one on several
    // groups one for each of them at the same time.
    const absl::StatusOr<Options>& options = ProcessOptions();
    const bool node_level = options.ok() && options->any_node_level;
    return new StepThreads(
        count, node_level ? std::max(1, port::MaxParallelism() / 2) : 1,
        kMostOfGroup);
  }();
  return threads;
}

void StepThreads::Schedule(const StreamGroup* group, Closure closure) {
  absl::MutexLock lock(&mu_);
  Lane* lane = nullptr;
  if (group != nullptr && most_of_group_ < static_cast<int>(running_.size())) {
    std::unique_ptr<Lane>& of_group = lanes_[group];
    if (of_group == nullptr) of_group = std::make_unique<Lane>();
    lane = of_group.get();
  }
  if (lane != nullptr && lane->admitted >= most_of_group_) {
    lane->parked.push_back(std::move(closure));
    ++parked_;
    if (watcher_sleeps_) watch_.Signal();
    return;
  }
  Admit(lane, std::move(closure));
  WakeSleeper();
}

void StepThreads::Admit(Lane* lane, Closure closure) {
  if (lane != nullptr) ++lane->admitted;
  closures_.push_back({lane, std::move(closure)});
  waiting_.store(closures_.size(), std::memory_order_release);
}

void StepThreads::Leave(Lane* lane) {
  --lane->admitted;
  if (lane->parked.empty()) return;
  // Behind what other groups have been given.
  Closure next = std::move(lane->parked.front());
  lane->parked.pop_front();
  --parked_;
  Admit(lane, std::move(next));
  if (Ended()) {
    given_.SignalAll();
    watch_.Signal();
  }
}

void StepThreads::WakeSleeper() {
  if (sleeping_ > 0 && closures_.size() > looking_) given_.Signal();
}

StepThreads* StepThreads::Of(const StreamGroup* group, int count) {
  static absl::Mutex mu(absl::kConstInit);
  static auto* all = new absl::flat_hash_map<const StreamGroup*, StepThreads*>;
  absl::MutexLock lock(&mu);
  StepThreads*& threads = (*all)[group];
  if (threads == nullptr) {
    threads =
        new StepThreads(count, 1, group == nullptr ? kMostOfGroup : count);
  }
  return threads;
}

Executor::Args::Runner StepThreads::RunnerFor(
    const Executor::Args& args, const StreamGroup* group, int groups,
    std::shared_ptr<StepThreads> of_session) {
  const absl::StatusOr<Options>& options = ProcessOptions();
  const ThreadMode mode =
      options.ok() ? options->thread_mode : ThreadMode::kProcess;
  if (args.run_all_kernels_inline) return args.runner;
  const StreamGroup* only_group = groups == 1 ? group : nullptr;
  // `threads`: a pointer, shared if they are not there for ever.
  const auto on = [only_group](auto threads) -> Executor::Args::Runner {
    return [threads, only_group](Executor::Args::Closure closure) {
      threads->Schedule(only_group, std::move(closure));
    };
  };
  if (of_session != nullptr &&
      (mode == ThreadMode::kProcess || mode == ThreadMode::kGlobal)) {
    return on(std::move(of_session));
  }
  if (mode == ThreadMode::kGlobal) return args.runner;
  return on(mode == ThreadMode::kProcess ? Get()
            : mode == ThreadMode::kShared
                ? Of(nullptr, options->thread_count)
                : Of(group, options->thread_count * groups));
}

bool StepThreads::RunThisThread() const { return of_this_thread == this; }

void StepThreads::Run(Running* running) {
  of_this_thread = this;
  bool has_looked = false;
  absl::MutexLock lock(&mu_);
  while (true) {
    if (!closures_.empty()) {
      auto [lane, closure] = std::move(closures_.front());
      closures_.pop_front();
      waiting_.store(closures_.size(), std::memory_order_release);
      if (lane != nullptr) *running = {lane, absl::Now()};
      mu_.Unlock();
      closure();
      closure = nullptr;
      mu_.Lock();
      if (running->lane != nullptr) {
        Leave(std::exchange(running->lane, nullptr));
      }
      has_looked = false;
    } else if (Ended()) {
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

void StepThreads::Watch() {
  absl::MutexLock lock(&mu_);
  while (!Ended()) {
    if (parked_ == 0) {
      watcher_sleeps_ = true;
      watch_.Wait(&mu_);
      watcher_sleeps_ = false;
      continue;
    }
    watch_.WaitWithTimeout(&mu_, blocked_);
    const absl::Time since = absl::Now() - blocked_;
    for (Running& running : running_) {
      if (running.lane == nullptr || running.since > since ||
          running.lane->parked.empty()) {
        continue;
      }
      Leave(std::exchange(running.lane, nullptr));
      WakeSleeper();
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
