// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"

#include <pthread.h>

#include <algorithm>
#include <cfenv>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/setround.h"

namespace tensorflow::multistream {
namespace {

constexpr absl::Duration kLookFor = absl::Milliseconds(1);
constexpr int kLooksAtOnce = 64;

constexpr absl::Duration kLookForWaits = absl::Seconds(1);
// Well above the milliseconds that an op waits for under full load.
constexpr int64_t kMuchTooLongNanos = 1'000'000'000;

// A closure that uses less than 1/kHardlyUsed of its processor is blocked. A
// closure that launches uses all of it; one that waits for the GIL wakes now
// and then, and so uses a little.
constexpr int kHardlyUsed = 8;

thread_local const StepThreads* of_this_thread = nullptr;

std::unique_ptr<Thread> NewThread(std::function<void()> body) {
  constexpr char kName[] = "tf_multistream";
#if defined(TFMS_SEARCHED)
  return search::NewThread(kName, std::move(body));
#else
  return std::unique_ptr<Thread>(Env::Default()->StartThread(
      ThreadOptions(), kName, [body = std::move(body)] {
        // As in TensorFlow's thread pools: ops of the host have the same bits.
        const port::ScopedFlushDenormal flush;
        const port::ScopedSetRound round(FE_TONEAREST);
        body();
      }));
#endif
}

// Notes that a step of `group` waits, or has waited, for `nanos`: for a driver
// lock, or for a thread.
void NoteWait(StreamGroup* group, int64_t nanos, bool for_lock) {
  group->counters()->NoteLaunchWait(nanos);
  if (nanos < kMuchTooLongNanos) return;
  static std::atomic<bool> has_warned{false};
  if (has_warned.exchange(true)) return;
  LOG(WARNING)
      << "Multi-stream: a step on stream group " << group->index() << " of GPU "
      << group->gpu() << " has waited for " << nanos / 1'000'000
      << " ms until its ops could be launched, for "
      << (for_lock ? "a lock of the CUDA driver. More threads launch than this "
                     "machine's cores can serve, or another process keeps the "
                     "driver busy: give the process more cores, or run fewer "
                     "processes on this GPU."
                   : "one of the threads that launch. They wait for ops that "
                     "block (of Python, of queues, of other machines), or for "
                     "cores: give the process more cores, the session more "
                     "inter-op threads, or each group threads of its own with "
                     "TF_GPU_THREAD_MODE=gpu_private.")
      << " tf.cuda.stream_stats() has the longest wait of each group. This is "
         "said once.";
}

}  // namespace

StepThreads::StepThreads(int count, int most_looking, int most_of_group,
                         absl::Duration blocked)
    : count_(count),
      most_looking_(most_looking),
      most_of_group_(most_of_group),
      blocked_(blocked) {
  absl::MutexLock lock(&mu_);
  for (int i = 0; i < count; ++i) StartThread();
  watcher_ = NewThread([this] { Watch(); });
}

StepThreads::~StepThreads() {
  {
    absl::MutexLock lock(&mu_);
    ends_.store(true, std::memory_order_release);
    scheduled_.SignalAll();
    rested_.SignalAll();
    watch_.Signal();
  }
  watcher_ = nullptr;  // joins
  threads_.clear();    // joins
}

void StepThreads::StartThread() {
  Running* running = &running_.emplace_back();
  ++active_;
  threads_.push_back(NewThread([this, running] { Run(running); }));
}

StepThreads* StepThreads::Get(bool node_level) {
  static StepThreads* threads = [node_level] {
    // As many as can run: more would only wait for driver locks.
    const int count = std::max(4, port::MaxParallelism());
    // At graph level a step needs another thread now and then; at node level, a
    // thread for each of its groups at the same time.
    return new StepThreads(
        count, node_level ? std::max(1, port::MaxParallelism() / 2) : 1,
        kMostOfGroup);
  }();
  return threads;
}

void StepThreads::Schedule(StreamGroup* group, Closure closure,
                           bool is_only_group) {
  if (group != nullptr) group->counters()->NoteStepsWaiting(1);
  Scheduled scheduled{group, group == nullptr ? 0 : SteadyNanos(),
                      std::move(closure)};
  absl::MutexLock lock(&mu_);
  const bool wakes_watcher = IsKept(Rule::kWhoSchedulesWakesTheWatcher);
  if (watcher_sleeps_ && wakes_watcher) watch_.Signal();
  Lane* lane = nullptr;
  if (group != nullptr && is_only_group &&
      // Without more threads than that, no group can have too many.
      most_of_group_ < count_) {
    std::unique_ptr<Lane>& of_group = lanes_[group];
    if (of_group == nullptr) of_group = std::make_unique<Lane>();
    lane = of_group.get();
  }
  if (lane != nullptr && lane->admitted >= most_of_group_) {
    lane->parked.push_back(std::move(scheduled));
    if (parked_++ == 0 && !watcher_looks_ && wakes_watcher) watch_.Signal();
    return;
  }
  Admit(lane, std::move(scheduled));
  WakeSleeper();
  if (!watcher_looks_ && IsShort() && wakes_watcher) watch_.Signal();
}

void StepThreads::Admit(Lane* lane, Scheduled scheduled) {
  if (lane != nullptr) ++lane->admitted;
  closures_.push_back({lane, std::move(scheduled)});
  waiting_.store(closures_.size(), std::memory_order_release);
}

void StepThreads::Leave(Lane* lane) {
  --lane->admitted;
  if (lane->parked.empty()) return;
  // Goes to the end of the queue, behind other groups' closures.
  Scheduled next = std::move(lane->parked.front());
  lane->parked.pop_front();
  --parked_;
  Admit(lane, std::move(next));
  if (Ended() && IsKept(Rule::kWhoAdmitsTheLastTellsOfTheEnd)) {
    scheduled_.SignalAll();
    rested_.SignalAll();
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
  // `threads`: a plain pointer, or a shared_ptr if the pool may be deleted.
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
  pthread_getcpuclockid(pthread_self(), &running->processor_clock);
  while (true) {
    if (HasTooMany()) {
      Rest();
    } else if (!closures_.empty()) {
      auto [lane, scheduled] = std::move(closures_.front());
      closures_.pop_front();
      waiting_.store(closures_.size(), std::memory_order_release);
      ++begun_;
      running->lane = lane;
      running->group = scheduled.group;
      running->since = SteadyNanos();
      mu_.Unlock();
      RunClosure(running, std::move(scheduled));
      mu_.Lock();
      running->group = nullptr;
      running->since = 0;
      if (running->lane != nullptr) {
        Leave(std::exchange(running->lane, nullptr));
      }
      has_looked = false;
      if (closures_.empty() && Ended()) watch_.Signal();
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
    group->counters()->NoteStepsWaiting(-1);
    NoteWait(group, running->since - scheduled.since, /*for_lock=*/false);
  }
  scheduled.closure();
  scheduled.closure = nullptr;
  std::atomic<int64_t>& longest = running->lock_waits.longest;
  if (longest.load(std::memory_order_relaxed) == 0) return;
  const int64_t waited = longest.exchange(0, std::memory_order_relaxed);
  if (group != nullptr) NoteWait(group, waited, /*for_lock=*/true);
}

void StepThreads::Rest() {
  --active_;
  // This thread may have been woken for a closure, which it will not take.
  WakeSleeper();
  if (!watcher_looks_ && IsShort()) watch_.Signal();
  while (active_ >= count_ + replacing_ && !Ended()) rested_.Wait(&mu_);
  ++active_;
}

void StepThreads::Watch() {
  absl::MutexLock lock(&mu_);
  int64_t begun_before = 0, begun_at_look = 0;
  absl::Time begun_at = absl::Now(), next_look = begun_at + kLookForWaits;
  while (!Ended() || !closures_.empty()) {
    const bool idle = parked_ == 0 && closures_.empty() && replacing_ == 0 &&
                      begun_ == std::exchange(begun_before, begun_);
    if (idle && !Ended() &&
        std::all_of(running_.begin(), running_.end(),
                    [](const Running& r) { return r.since == 0; })) {
      watcher_sleeps_ = true;
      watch_.Wait(&mu_);
      watcher_sleeps_ = false;
      continue;
    }
    watcher_looks_ = parked_ > 0 || IsShort();
    watch_.WaitWithTimeout(&mu_, watcher_looks_
                                     ? std::min(blocked_, kLookForWaits)
                                     : kLookForWaits);
    watcher_looks_ = false;
    const absl::Time now = absl::Now();
    if (std::exchange(begun_at_look, begun_) != begun_) begun_at = now;
    const bool stands_still = now - begun_at > kStandsStill * blocked_;
    if (parked_ > 0 && IsKept(Rule::kWhoIsBlockedDoesNotCountForItsGroup)) {
      LetInWhereBlocked();
    }
    if (IsShort() && IsKept(Rule::kWhoIsBlockedIsReplaced)) {
      ReplaceBlocked(stands_still);
    }
    if (now >= next_look) {
      NoteWaits();
      ReplaceFewer(stands_still);
      next_look = now + kLookForWaits;
    }
  }
}

bool StepThreads::MayWaitForAnother(int64_t since, const LockWaits& waits,
                                    int64_t now, int64_t blocked) {
  return now - since >= blocked &&
         waits.since.load(std::memory_order_acquire) == 0 &&
         now - waits.ended.load(std::memory_order_relaxed) >= blocked;
}

void StepThreads::LetInWhereBlocked() {
  const int64_t now = SteadyNanos();
  for (Running& running : running_) {
    if (running.lane == nullptr || running.lane->parked.empty() ||
        !MayWaitForAnother(running.since, running.lock_waits, now,
                           absl::ToInt64Nanoseconds(blocked_))) {
      continue;
    }
    Leave(std::exchange(running.lane, nullptr));
    WakeSleeper();
  }
}

int StepThreads::Blocked(bool stands_still) {
  const int64_t now = SteadyNanos();
  int count = 0;
  for (Running& running : running_) {
    if (running.since != 0 &&
        MayWaitForAnother(running.since, running.lock_waits, now,
                          absl::ToInt64Nanoseconds(blocked_)) &&
        (IsBlocked(now, &running) || stands_still)) {
      ++count;
    }
  }
  return count;
}

bool StepThreads::IsBlocked(int64_t now, Running* running) const {
  const bool is_new = running->seen_of != running->since;
  const int64_t elapsed = now - running->seen_at;
  if (!is_new && elapsed < absl::ToInt64Nanoseconds(blocked_)) {
    return running->is_blocked;
  }
  timespec time = {};
  clock_gettime(running->processor_clock, &time);
  const int64_t used =
      absl::ToInt64Nanoseconds(absl::DurationFromTimespec(time)) -
      running->processor_nanos;
  running->is_blocked = !is_new && used < elapsed / kHardlyUsed;
  running->processor_nanos += used;
  running->seen_of = running->since;
  running->seen_at = now;
  return running->is_blocked;
}

void StepThreads::ReplaceBlocked(bool stands_still) {
  const int most = std::max(count_, StockThreads::InProcess()) - count_;
  if (replacing_ >= most) return;
  const int wanted =
      std::min({Blocked(stands_still), most,
                replacing_ + static_cast<int>(closures_.size())});
  if (wanted <= replacing_) return;
  replacing_ = wanted;
  while (static_cast<int>(running_.size()) < count_ + replacing_) {
    StartThread();
  }
  rested_.SignalAll();
}

void StepThreads::ReplaceFewer(bool stands_still) {
  if (replacing_ == 0) return;
  replacing_ = std::min(replacing_, Blocked(stands_still));
  if (HasTooMany()) scheduled_.SignalAll();
}

void StepThreads::NoteWaits() {
  const int64_t now = SteadyNanos();
  for (const Running& running : running_) {
    const int64_t since = running.lock_waits.since;
    if (running.group != nullptr && since != 0) {
      NoteWait(running.group, now - since, /*for_lock=*/true);
    }
  }
  // The queue is FIFO: its first closure has waited longest.
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

}  // namespace tensorflow::multistream
