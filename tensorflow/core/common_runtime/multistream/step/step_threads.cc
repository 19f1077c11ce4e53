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

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/util/spin.h"
#include "tensorflow/core/common_runtime/multistream/util/spinning_locks.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr absl::Duration kLookFor = absl::Milliseconds(1);
constexpr int kLooksAtOnce = 64;

constexpr absl::Duration kLookForWaits = absl::Seconds(1);
// Under full load an op waits for milliseconds.
constexpr int64_t kMuchTooLongNanos = 1'000'000'000;

thread_local const StepThreads* of_this_thread = nullptr;

// `group`'s step waits, or has waited, for `nanos`: for a lock of the driver,
// or for a thread.
void NoteWait(StreamGroup* group, int64_t nanos, bool for_lock) {
  group->NoteLaunchWait(nanos);
  if (nanos < kMuchTooLongNanos) return;
  static std::atomic<bool> has_warned{false};
  if (has_warned.exchange(true)) return;
  LOG(WARNING)
      << "Multi-stream: a step on stream group " << group->index() << " of GPU "
      << group->gpu() << " has waited for " << nanos / 1'000'000
      << " ms until its ops could be launched, for "
      << (for_lock
              ? "a lock of the CUDA driver. More threads launch than this "
                "machine's cores can serve, or another process keeps the "
                "driver busy: give the process more cores, or run fewer "
                "processes on this GPU."
              : "one of the threads that launch. They wait for ops that "
                "block (of Python, of queues, of other machines), or for "
                "cores: give the process more cores, or each group threads "
                "of its own with TF_GPU_THREAD_MODE=gpu_private.")
      << " tf.cuda.stream_stats() has the longest wait of each group. This is "
         "said once.";
}

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
    scheduled_.SignalAll();
    watch_.Signal();
  }
  threads_.clear();  // waits for them
}

StepThreads* StepThreads::Get(bool node_level) {
  static StepThreads* threads = [node_level] {
    // As many as can run: more of them only wait for a lock of the driver.
    const int count = std::max(4, port::MaxParallelism());
    // A step on one group needs another thread now and then, one on several
    // groups one for each of them at the same time.
    return new StepThreads(
        count, node_level ? std::max(1, port::MaxParallelism() / 2) : 1,
        kMostOfGroup);
  }();
  return threads;
}

void StepThreads::Schedule(StreamGroup* group, Closure closure,
                           bool is_only_group) {
  if (group != nullptr) group->NoteStepsWaiting(1);
  Scheduled scheduled{group, group == nullptr ? 0 : SteadyNanos(),
                      std::move(closure)};
  absl::MutexLock lock(&mu_);
  if (watcher_sleeps_) watch_.Signal();
  Lane* lane = nullptr;
  if (group != nullptr && is_only_group &&
      most_of_group_ < static_cast<int>(running_.size())) {
    std::unique_ptr<Lane>& of_group = lanes_[group];
    if (of_group == nullptr) of_group = std::make_unique<Lane>();
    lane = of_group.get();
  }
  if (lane != nullptr && lane->admitted >= most_of_group_) {
    lane->parked.push_back(std::move(scheduled));
    if (parked_++ == 0) watch_.Signal();
    return;
  }
  Admit(lane, std::move(scheduled));
  WakeSleeper();
}

void StepThreads::Admit(Lane* lane, Scheduled scheduled) {
  if (lane != nullptr) ++lane->admitted;
  closures_.push_back({lane, std::move(scheduled)});
  waiting_.store(closures_.size(), std::memory_order_release);
}

void StepThreads::Leave(Lane* lane) {
  --lane->admitted;
  if (lane->parked.empty()) return;
  // Behind what other groups' steps have scheduled.
  Scheduled next = std::move(lane->parked.front());
  lane->parked.pop_front();
  --parked_;
  Admit(lane, std::move(next));
  if (Ended()) {
    scheduled_.SignalAll();
    watch_.Signal();
  }
}

void StepThreads::WakeSleeper() {
  if (sleeping_ > 0 && closures_.size() > looking_) scheduled_.Signal();
}

StepThreads* StepThreads::Of(StreamGroup* group, int count) {
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
    const Options& options, const Executor::Args& args, StreamGroup* group,
    int groups, std::shared_ptr<StepThreads> of_session) {
  const ThreadMode mode = options.thread_mode;
  if (args.run_all_kernels_inline) {
    return
        [group, run = args.runner, caller = std::this_thread::get_id(),
         node_level = options.any_node_level](Executor::Args::Closure closure) {
          if (std::this_thread::get_id() == caller) {
            run(std::move(closure));
          } else {
            Get(node_level)->Schedule(group, std::move(closure));
          }
        };
  }
  // `threads`: a pointer, shared if they are not there for ever.
  const auto on = [group, groups](auto threads) -> Executor::Args::Runner {
    return [threads, group, groups](Executor::Args::Closure closure) {
      threads->Schedule(group, std::move(closure),
                        /*is_only_group=*/groups == 1);
    };
  };
  if (of_session != nullptr &&
      (mode == ThreadMode::kProcess || mode == ThreadMode::kGlobal)) {
    return on(std::move(of_session));
  }
  if (mode == ThreadMode::kGlobal) return args.runner;
  return on(mode == ThreadMode::kProcess ? Get(options.any_node_level)
            : mode == ThreadMode::kShared
                ? Of(nullptr, options.thread_count)
                : Of(group, options.thread_count * groups));
}

bool StepThreads::RunThisThread() const { return of_this_thread == this; }

void StepThreads::Run(Running* running) {
  of_this_thread = this;
  ShowLockWaitsOfThisThread(&running->lock_waits);
  bool has_looked = false;
  absl::MutexLock lock(&mu_);
  while (true) {
    if (!closures_.empty()) {
      auto [lane, scheduled] = std::move(closures_.front());
      closures_.pop_front();
      waiting_.store(closures_.size(), std::memory_order_release);
      ++begun_;
      running->lane = lane;
      running->group = scheduled.group;
      if (scheduled.group != nullptr) running->since = SteadyNanos();
      mu_.Unlock();
      RunClosure(running, std::move(scheduled));
      mu_.Lock();
      running->group = nullptr;
      if (running->lane != nullptr) {
        Leave(std::exchange(running->lane, nullptr));
      }
      has_looked = false;
    } else if (Ended()) {
      break;
    } else if (!has_looked && looking_ < static_cast<size_t>(most_looking_)) {
      ++looking_;
      mu_.Unlock();
      const bool found = Look();
      mu_.Lock();
      --looking_;
      has_looked = !found;
    } else {
      ++sleeping_;
      scheduled_.Wait(&mu_);
      --sleeping_;
      has_looked = false;
    }
  }
  ShowLockWaitsOfThisThread(nullptr);
}

void StepThreads::RunClosure(Running* running, Scheduled scheduled) {
  StreamGroup* group = scheduled.group;
  if (group != nullptr) {
    group->NoteStepsWaiting(-1);
    NoteWait(group, running->since - scheduled.since, /*for_lock=*/false);
  }
  scheduled.closure();
  scheduled.closure = nullptr;
  std::atomic<int64_t>& longest = running->lock_waits.longest;
  if (longest.load(std::memory_order_relaxed) == 0) return;
  const int64_t waited = longest.exchange(0, std::memory_order_relaxed);
  if (group != nullptr) NoteWait(group, waited, /*for_lock=*/true);
}

void StepThreads::Watch() {
  absl::MutexLock lock(&mu_);
  int64_t begun_before = 0;
  absl::Time next_look = absl::Now() + kLookForWaits;
  while (!Ended()) {
    const bool idle = parked_ == 0 && closures_.empty() &&
                      begun_ == std::exchange(begun_before, begun_);
    if (idle &&
        std::all_of(running_.begin(), running_.end(),
                    [](const Running& r) { return r.group == nullptr; })) {
      watcher_sleeps_ = true;
      watch_.Wait(&mu_);
      watcher_sleeps_ = false;
      if (Ended()) break;
    }
    watch_.WaitWithTimeout(
        &mu_, parked_ > 0 ? std::min(blocked_, kLookForWaits) : kLookForWaits);
    if (parked_ > 0) LetInWhereBlocked();
    if (absl::Now() >= next_look) {
      NoteWaits();
      next_look = absl::Now() + kLookForWaits;
    }
  }
}

void StepThreads::LetInWhereBlocked() {
  const int64_t since = SteadyNanos() - absl::ToInt64Nanoseconds(blocked_);
  for (Running& running : running_) {
    if (running.lane == nullptr || running.since > since ||
        running.lane->parked.empty()) {
      continue;
    }
    const LockWaits& waits = running.lock_waits;
    if (waits.since.load(std::memory_order_acquire) != 0 ||
        waits.ended.load(std::memory_order_relaxed) > since) {
      continue;
    }
    Leave(std::exchange(running.lane, nullptr));
    WakeSleeper();
  }
}

void StepThreads::NoteWaits() {
  const int64_t now = SteadyNanos();
  for (const Running& running : running_) {
    const int64_t since = running.lock_waits.since;
    if (running.group != nullptr && since != 0) {
      NoteWait(running.group, now - since, /*for_lock=*/true);
    }
  }
  // The first is the one that waits longest.
  if (!closures_.empty() && closures_.front().scheduled.group != nullptr) {
    const Scheduled& first = closures_.front().scheduled;
    NoteWait(first.group, now - first.since, /*for_lock=*/false);
  }
  for (const auto& [group, lane] : lanes_) {
    if (lane->parked.empty()) continue;
    NoteWait(lane->parked.front().group, now - lane->parked.front().since,
             /*for_lock=*/false);
  }
}

bool StepThreads::Look() const {
  const auto look = [this] {
    return waiting_.load(std::memory_order_acquire) > 0 ||
           ends_.load(std::memory_order_acquire);
  };
  return Spin(kLooksAtOnce, look) ||
         YieldUntil(absl::ToInt64Nanoseconds(kLookFor), kLooksAtOnce, look);
}

}  // namespace multistream
}  // namespace tensorflow
