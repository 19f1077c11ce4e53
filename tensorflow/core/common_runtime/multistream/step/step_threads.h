// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads launch the ops of steps on stream groups? Executors ask at the
// beginning of each step.
//
// Not the session's threads: a pool thread of TensorFlow takes its own newest
// closure first (LIFO), and with as many clients as threads, closures from
// outside waited for seconds. StepThreads is FIFO.
//
// At most two threads launch for one group. A launch locks the stream, so a
// third thread would only wait for the other two while other groups have no
// thread: the throughput was half until the load ended.
//
// Some idle threads poll for a while before they sleep, because a step joins
// its branches some hundred microseconds after it forks into them, and waking a
// sleeping thread can take as long.
//
// A closure may block: a Python op calls a function and waits for its step, or
// an op waits for a queue that another step fills. Without a thread for that
// other step, both would wait for ever. So a blocked closure does not count:
// while closures are queued and no thread is free, another thread stands in.
//
//   threads      1       2       3       4       5       6
//              call    call    call    call
//                 all blocked, two steps queued  step    step
//
// A pool grows to as many threads as stock TensorFlow has for the process's
// sessions (StockThreads), if it does not begin with more. A pool of that size
// deadlocks only if as many closures wait for queued ones, and then stock's
// threads, which run the same closures and the CPU's besides, would, too.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STEP_THREADS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STEP_THREADS_H_

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow::multistream {

// A FIFO pool of threads.
class StepThreads {
 public:
  // `most_looking`: how many of the `count` threads may poll instead of sleep.
  // `most_of_group`: how many closures of one group run at the same time.
  //
  // A closure that has run for `blocked` may wait for another closure, and no
  // longer counts for its group. The exception: it waits, or waited just now,
  // for a driver lock, where another thread would wait, too. A closure that may
  // wait for another stops counting towards `count`, too, if it has hardly used
  // a processor for `blocked`, or if none began for kStandsStill * `blocked`.
  StepThreads(int count, int most_looking, int most_of_group,
              absl::Duration blocked = absl::Milliseconds(5));
  // Runs all scheduled closures first.
  ~StepThreads();

  // The process-wide pool, made by the first call. `node_level`: some steps
  // have ops of several groups. Never deleted.
  static StepThreads* Get(bool node_level);

  // `group`: the group of the closure's step, or nullptr. `is_only_group`: the
  // step has ops of no other group.
  void Schedule(StreamGroup* group, std::function<void()> closure,
                bool is_only_group = true);

  // Whether the calling thread belongs to this pool.
  bool RunThisThread() const;

  // One thread launches while the other does work on the host.
  static constexpr int kMostOfGroup = 2;
  static constexpr int kStandsStill = 20;

  // Whether a closure that began at `since` may be waiting for another closure:
  // it has run for at least `blocked`, and its thread has not waited for a
  // driver lock in the last `blocked` nanoseconds.
  static bool MayWaitForAnother(int64_t since, const LockWaits& waits,
                                int64_t now, int64_t blocked);

  // Where a step with these arguments on `group` runs its closures. The first
  // line that applies:
  //   run_all_kernels_inline: on the caller's runner. But closures that another
  //   thread schedules run on the process-wide pool: an asynchronous op often
  //   ends in the only thread for stream callbacks, and the next op may wait
  //   there for a variable's lock that only another callback releases;
  //   TF_GPU_THREAD_MODE=gpu_private: on TF_GPU_THREAD_COUNT threads of the
  //   group;
  //   gpu_shared: on TF_GPU_THREAD_COUNT threads for all groups;
  //   the session has threads for the group: on `of_session`;
  //   global: on the caller's runner;
  //   else on the process-wide pool.
  // `groups`: how many groups the step's ops have; `group` is the first.
  static Executor::Args::Runner RunnerFor(
      const Options& options, const Executor::Args& args, StreamGroup* group,
      int groups, std::shared_ptr<StepThreads> of_session);

 private:
  using Closure = std::function<void()>;

  struct Scheduled {
    StreamGroup* group;  // or nullptr
    int64_t since;       // SteadyNanos()
    Closure closure;
  };
  // The closures of a group. `admitted`: how many are in `closures_`, or run
  // and count for the group. `parked` closures wait until one leaves.
  struct Lane {
    int admitted = 0;
    std::deque<Scheduled> parked;
  };
  struct Admitted {
    Lane* lane;  // or nullptr
    Scheduled scheduled;
  };
  // The state of one thread, and of the closure that it runs.
  struct Running {
    Lane* lane = nullptr;  // while the closure counts for its group
    StreamGroup* group = nullptr;
    int64_t since = 0;  // SteadyNanos(); 0: no closure runs
    LockWaits lock_waits;
    // The thread's CPU clock, and what Watch() read there for this closure.
    clockid_t processor_clock = -1;
    int64_t seen_of = 0;  // `since`
    int64_t seen_at = 0;
    int64_t processor_nanos = 0;
    bool is_blocked = false;
  };

  // The pool of a group, or of all groups (nullptr). Never deleted.
  static StepThreads* Of(StreamGroup* group, int count);

  // Enqueues to `closures_`, as one of `lane` (nullptr: counts for no group).
  void Admit(Lane* lane, Scheduled scheduled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Call when a closure of `lane` has run, or no longer counts. Admits the
  // lane's next parked closure.
  void Leave(Lane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeSleeper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ends_.load(std::memory_order_acquire) && parked_ == 0;
  }

  // Whether more closures are queued than threads are free.
  bool IsShort() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closures_.size() > sleeping_ + looking_;
  }
  // Whether some thread has to rest: more are active than allowed.
  bool HasTooMany() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return active_ > count_ + replacing_ && !Ended();
  }

  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run(Running* running);
  void RunClosure(Running* running, Scheduled scheduled);
  // Blocks the calling thread until it has to replace a blocked one.
  void Rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The watcher's loop: admits parked closures and replaces threads where
  // closures are blocked, and reports long waits.
  void Watch();
  void LetInWhereBlocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many closures are blocked. `stands_still`: no closure has begun for
  // long, so a closure that uses its processor counts as blocked, too.
  int Blocked(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsBlocked(int64_t now, Running* running) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReplaceBlocked(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Sends surplus threads to rest when fewer closures are blocked.
  void ReplaceFewer(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Polls for closures. False if none came for a while.
  bool Look() const;

  const int count_;
  const int most_looking_;
  const int most_of_group_;
  const absl::Duration blocked_;
  // The size of closures_, for threads that poll without the lock.
  std::atomic<size_t> waiting_{0};
  absl::Mutex mu_;
  absl::CondVar scheduled_;
  std::deque<Admitted> closures_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const StreamGroup*, std::unique_ptr<Lane>> lanes_
      ABSL_GUARDED_BY(mu_);
  size_t parked_ ABSL_GUARDED_BY(mu_) = 0;  // in all lanes
  // One for each thread. A deque: threads keep pointers to their elements.
  std::deque<Running> running_ ABSL_GUARDED_BY(mu_);
  int active_ ABSL_GUARDED_BY(mu_) = 0;     // threads that do not rest
  int replacing_ ABSL_GUARDED_BY(mu_) = 0;  // threads allowed beyond count_
  absl::CondVar rested_;
  absl::CondVar watch_;
  // Whether Watch() waits for a signal, or polls every `blocked_`.
  bool watcher_sleeps_ ABSL_GUARDED_BY(mu_) = false;
  bool watcher_looks_ ABSL_GUARDED_BY(mu_) = false;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;  // closures so far
  size_t looking_ ABSL_GUARDED_BY(mu_) = 0;
  size_t sleeping_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<bool> ends_{false};
  // Only the constructor and Watch() add threads.
  std::vector<std::unique_ptr<Thread>> threads_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STEP_THREADS_H_
