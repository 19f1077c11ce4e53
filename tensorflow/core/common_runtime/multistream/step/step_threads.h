// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads launch the ops of steps on stream groups? Executors ask at the
// beginning of each step.
//
// Not those of the session. A thread of TensorFlow's pools first runs what it
// has scheduled itself last: with as many clients as threads, what came from
// outside waited for seconds. These threads take what came first.
//
// They do not all work for one group. Who enqueues on a stream locks it: a
// third thread there only waits for the other two, while other groups have
// nobody. Where all threads came to stand behind one stream after another, that
// halved the throughput until the load ended.
//
// And they are awake where it counts. A step forks into its branches and joins
// them some hundred microseconds later; to wake a thread that sleeps can take
// as long. So some of the idle threads look for work for a while before they
// sleep.
//
// A closure may block: one of Python calls a function and waits for its step,
// one takes from a queue that another step fills. If that step finds no thread,
// both wait for ever. So a closure that is blocked does not count: while others
// are queued and no thread is free, another thread takes its place.
//
//   threads      1       2       3       4       5       6
//              call    call    call    call
//                 all blocked, two steps queued  step    step
//
// A pool has at most as many threads as TensorFlow itself has for the sessions
// of the process (StockThreads), or as it begins with, if these are more. That
// is enough for all that ends there: a pool that stands still with so many
// threads has as many closures that wait for queued ones, and TensorFlow's
// threads would all wait in them, too, as they run these closures and those of
// the CPU besides.

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

namespace tensorflow {
namespace multistream {

// Threads that run closures in the order in which they were scheduled.
class StepThreads {
 public:
  // `most_looking`: of `count`, how many may look for work instead of sleeping.
  // `most_of_group`: how many run closures of the same group at the same time;
  // one that has run for `blocked` no longer counts, as it may wait for
  // another. But one that waits for a lock of the driver, or did just now,
  // counts: another would wait there, too. Nor does a closure count among
  // `count` if it has hardly used a processor for `blocked`, or if no other
  // has begun for kStandsStill times as long.
  StepThreads(int count, int most_looking, int most_of_group,
              absl::Duration blocked = absl::Milliseconds(5));
  // Runs all closures first.
  ~StepThreads();

  // Those of the process, made by the first call. `node_level`: some steps have
  // ops of several groups. Never deleted.
  static StepThreads* Get(bool node_level);

  // `group`: whose step it is part of, nullptr: nobody's. `is_only_group`: the
  // step has ops of no other group.
  void Schedule(StreamGroup* group, std::function<void()> closure,
                bool is_only_group = true);

  // Whether the calling thread is one of these.
  bool RunThisThread() const;

  // One that launches, and one that has something to do on the host meanwhile.
  static constexpr int kMostOfGroup = 2;
  static constexpr int kStandsStill = 20;

  // Whether a closure that began at `since` has run for so long that it may
  // wait for another: for `blocked` or longer, and its thread has not waited
  // for a lock of the driver meanwhile.
  static bool MayWaitForAnother(int64_t since, const LockWaits& waits,
                                int64_t now, int64_t blocked);

  // Where a step with these arguments on `group` runs its closures:
  //   as the caller wants, if it wants all kernels run in its own thread. But
  //   what comes from another thread, on the threads of the process: where an
  //   asynchronous op is done, often in the only thread that runs all callbacks
  //   of streams, the next op may wait for a variable that another asynchronous
  //   op has locked, until a callback says that it is done;
  //   with TF_GPU_THREAD_MODE=gpu_private: on TF_GPU_THREAD_COUNT threads of
  //   the group;
  //   gpu_shared: on as many threads for all groups;
  //   else on `of_session`, if the session has threads for the group;
  //   global: as the caller wants;
  //   else on the threads of the process.
  // `groups`: how many groups the step's ops have, of which `group` is the
  // first.
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
  // The closures of a group. Those that are `admitted` are in `closures_`, or
  // run and count.
  struct Lane {
    int admitted = 0;
    std::deque<Scheduled> parked;
  };
  struct Admitted {
    Lane* lane;  // or nullptr
    Scheduled scheduled;
  };
  // What a thread runs.
  struct Running {
    Lane* lane = nullptr;  // for as long as it counts
    StreamGroup* group = nullptr;
    int64_t since = 0;  // SteadyNanos(); 0: it runs nothing
    LockWaits lock_waits;
    // Of the thread, and what Watch() has seen of this closure.
    clockid_t processor_clock = -1;
    int64_t seen_of = 0;  // `since`
    int64_t seen_at = 0;
    int64_t processor_nanos = 0;
    bool is_blocked = false;
  };

  // Those of a group, or of all groups (nullptr). Never deleted.
  static StepThreads* Of(StreamGroup* group, int count);

  // To `closures_`, or it has to wait for others of its group.
  void Admit(Lane* lane, Scheduled scheduled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One of `lane` has run, or no longer counts.
  void Leave(Lane* lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeSleeper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ends_.load(std::memory_order_acquire) && parked_ == 0;
  }

  // Whether closures are queued that no thread is free for.
  bool IsShort() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return closures_.size() > sleeping_ + looking_;
  }
  // Whether more threads take closures than may.
  bool HasTooMany() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return active_ > count_ + replacing_ && !Ended();
  }

  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Run(Running* running);
  void RunClosure(Running* running, Scheduled scheduled);
  // The calling thread takes no closures until it is to replace another.
  void Rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Lets closures in where others are blocked, and notes long waits.
  void Watch();
  void LetInWhereBlocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How many closures are blocked. `stands_still`: for long none has begun.
  int Blocked(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsBlocked(int64_t now, Running* running) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReplaceBlocked(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Threads that no longer replace any rest.
  void ReplaceFewer(bool stands_still) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteWaits() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether there may be something to do. False after a while.
  bool Look() const;

  const int count_;
  const int most_looking_;
  const int most_of_group_;
  const absl::Duration blocked_;
  // Of closures_, for who looks without the lock.
  std::atomic<size_t> waiting_{0};
  absl::Mutex mu_;
  absl::CondVar scheduled_;
  std::deque<Admitted> closures_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const StreamGroup*, std::unique_ptr<Lane>> lanes_
      ABSL_GUARDED_BY(mu_);
  size_t parked_ ABSL_GUARDED_BY(mu_) = 0;  // of all lanes
  // Of each thread. Threads know theirs, so none moves.
  std::deque<Running> running_ ABSL_GUARDED_BY(mu_);
  int active_ ABSL_GUARDED_BY(mu_) = 0;     // threads that do not rest
  int replacing_ ABSL_GUARDED_BY(mu_) = 0;  // of them, more than count_
  absl::CondVar rested_;
  absl::CondVar watch_;
  // Whether Watch() waits for a signal, or looks often without one.
  bool watcher_sleeps_ ABSL_GUARDED_BY(mu_) = false;
  bool watcher_looks_ ABSL_GUARDED_BY(mu_) = false;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;  // closures
  size_t looking_ ABSL_GUARDED_BY(mu_) = 0;
  size_t sleeping_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<bool> ends_{false};
  // Only the constructor and Watch() add some.
  std::vector<std::unique_ptr<Thread>> threads_;
  std::unique_ptr<Thread> watcher_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_STEP_THREADS_H_
