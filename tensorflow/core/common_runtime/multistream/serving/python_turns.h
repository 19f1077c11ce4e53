// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which of the threads that come back from a call goes on in Python first?
//
// Python's lock is one thread's at a time. A thread that has to wait for it
// sleeps, and the thread that gives the lock back wakes it. Waking takes longer
// than most threads keep the lock, so with many threads the lock is free, and
// wanted, most of the time. So threads that come back from a call queue up
// here, and only one at a time asks for the lock. The first few of the queue
// look for their turn, the others sleep until they are among the first.
//
//   in a call  ------ Leave ------------------- Enter ---- HasLock -----
//   in Python                   <- others' turns ->    asks       has it
//
// A turn ends with the thread's next call, or some time after it has got the
// lock: it may work for long, or have given the lock back to do something else,
// such as to wait for a network. Where many threads do, there are no turns.
//
// Threads that make no calls ask for the lock as always. One that sleeps until
// it is given back would find it taken again each time it has woken. So where
// threads wait for their turn, nobody has one now and then, for as long as it
// takes to wake.
//
// Figures: python_turns_h100_2026-11-25.csv.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_TURNS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_TURNS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace tensorflow {
namespace multistream {

// Thread-safe.
class PythonTurns {
 public:
  struct Limits {
    // Who has had the lock for so long has lost the turn, if anybody wants it.
    std::chrono::nanoseconds turn = std::chrono::microseconds(300);
    // Nobody waits for a turn for longer.
    std::chrono::nanoseconds wait = std::chrono::milliseconds(20);
    // Where threads have waited for so long, nobody has a turn for a while.
    std::chrono::nanoseconds pause_after = std::chrono::milliseconds(2);
    std::chrono::nanoseconds pause = std::chrono::microseconds(50);
    // How many look for their turn, each on a core of its own.
    int looking = 1;
    // So many lost turns, each made up for by so many that were not, are too
    // many: there are none for a while, which is twice as long each time, up to
    // the most.
    int lost = 8;
    int turns_for_lost = 32;
    std::chrono::nanoseconds off = std::chrono::milliseconds(100);
    std::chrono::nanoseconds most_off = std::chrono::seconds(10);
  };

  PythonTurns() : PythonTurns(Limits()) {}
  explicit PythonTurns(const Limits& limits)
      : limits_(limits), off_(limits.off.count()) {}
  PythonTurns(const PythonTurns&) = delete;
  PythonTurns& operator=(const PythonTurns&) = delete;

  // The calling thread is about to ask for Python's lock: waits for its turn.
  // Returns whether it has it.
  bool Enter();
  // It has the lock, with or without a turn. Once after each Enter.
  void HasLock();
  // It has given the lock back.
  void Leave();

  // How many wait in Enter.
  int waiting() const;

 private:
  struct Waiter {
    std::list<Waiter*>::iterator place;
    // Whether it is one of the first, and whether it is awake and knows. Both
    // change under mu_.
    bool is_called = false;
    bool looks = false;
    absl::Notification wakes;
    std::atomic<int64_t> turn{0};  // the number of its turn; 0: not yet
  };

  // What holds_since_ is if nobody has the turn, and while who has it asks for
  // the lock.
  static constexpr int64_t kNobody = 0, kAsks = -1;

  bool IsOff() const;
  // Whether one may begin: nobody has the turn, or who has it has lost it.
  bool IsFree() const;
  // For a waiter that looks: the first that sees it takes a turn that was lost,
  // or that nobody has had in a pause. Returns whether this one has it.
  bool TakeIfFree(Waiter* waiter);
  // Returns whether it has none: it may have been given one just now.
  bool GiveUp(Waiter* waiter);

  // Returns those that are to wake now, for Wake, without the lock.
  std::vector<Waiter*> Remove(Waiter* waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Wake(const std::vector<Waiter*>& called);

  Waiter* FirstThatLooks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns whether nobody is to have a turn just now.
  bool BeginPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  std::atomic<int64_t> off_until_{0};
  // Since when who has the turn has had the lock.
  std::atomic<int64_t> holds_since_{kNobody};
  std::atomic<int64_t> pause_until_{0};

  mutable absl::Mutex mu_;  // never held for long
  std::list<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  int64_t turn_ ABSL_GUARDED_BY(mu_) = 0;  // the number of the last one
  // When a thread first waited after the last pause, and not for its end; 0:
  // none has.
  int64_t waited_since_ ABSL_GUARDED_BY(mu_) = 0;
  // Turns that are to make up for lost ones.
  int lost_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t off_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_TURNS_H_
