// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which of the threads that return from a call goes on in Python first?
//
// The thread that releases the GIL wakes one that waits for it. Waking takes
// longer than most threads keep the GIL, so with many threads the GIL is free,
// and wanted, most of the time. So threads that return from a call queue up
// here, and only the thread that has the turn asks for the GIL. The first few
// threads of the queue poll for their turn; the others sleep until then.
//
//   in a call  ------ Leave ------------------- Enter ---- HasLock -----
//   in Python                   <- others' turns ->    asks       has it
//
// A turn ends with the thread's next call, or is lost some time after the
// thread got the GIL: the thread may work for long, or have released the GIL
// to wait, say, for a network. Where many turns are lost, turns are off.
//
// Threads that make no calls ask for the GIL as always. Such a thread, woken
// when the GIL is released, would find the GIL taken again each time. So while
// threads queue for turns, there is now and then a pause without a turn, as
// long as waking takes. Figures: python_turns_h100_2026-11-25.csv.

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

namespace tensorflow::multistream {

// Thread-safe.
class PythonTurns {
 public:
  struct Limits {
    // A thread that has had the GIL for so long loses its turn to a waiter.
    std::chrono::nanoseconds turn = std::chrono::microseconds(300);
    // The longest wait for a turn.
    std::chrono::nanoseconds wait = std::chrono::milliseconds(20);
    // After threads have queued for `pause_after`, no turn begins for `pause`.
    std::chrono::nanoseconds pause_after = std::chrono::milliseconds(2);
    std::chrono::nanoseconds pause = std::chrono::microseconds(50);
    // How many waiters poll for their turn, each on its own core.
    int looking = 1;
    // A leaky bucket: each lost turn adds turns_for_lost, each kept turn takes
    // one out. At `lost` lost turns, turns are off for `off`, which doubles
    // each time up to most_off.
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

  // Call before asking for the GIL: waits for the calling thread's turn.
  // Returns whether the thread has the turn.
  bool Enter();
  // Call once after each Enter, when the thread has the GIL, turn or no turn.
  void HasLock();
  // Call when the thread has released the GIL.
  void Leave();

  // How many threads wait in Enter.
  int waiting() const;

 private:
  struct Waiter {
    std::list<Waiter*>::iterator place;
    // Whether the waiter is among the first, and whether it polls already. Both
    // change under mu_.
    bool is_called = false;
    bool looks = false;
    absl::Notification wakes;
    std::atomic<int64_t> turn{0};  // the number of the turn; 0: not yet
  };

  // Values of holds_since_: no thread has the turn; the thread that has the
  // turn still asks for the GIL.
  static constexpr int64_t kNobody = 0, kAsks = -1;

  bool IsOff() const;
  // Whether a turn may begin: no thread has the turn, or it is lost.
  bool IsFree() const;
  // For a waiter that polls: takes the turn if it was lost, or is free after a
  // pause. Returns whether this waiter got the turn: the first to call does.
  bool TakeIfFree(Waiter* waiter);
  // Leaves the queue. Returns false if the waiter got a turn just before.
  bool GiveUp(Waiter* waiter);

  // Returns the waiters to wake: pass them to Wake after releasing mu_.
  std::vector<Waiter*> Remove(Waiter* waiter)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static void Wake(const std::vector<Waiter*>& called);

  Waiter* FirstThatLooks() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns whether a pause has begun, so that no turn may.
  bool BeginPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  std::atomic<int64_t> off_until_{0};
  // Since when the thread with the turn has had the GIL; or kNobody, kAsks.
  std::atomic<int64_t> holds_since_{kNobody};
  std::atomic<int64_t> pause_until_{0};

  mutable absl::Mutex mu_;  // never held for long
  std::list<Waiter*> waiters_ ABSL_GUARDED_BY(mu_);
  int64_t turn_ ABSL_GUARDED_BY(mu_) = 0;  // the number of the last turn
  // When a thread first queued after the last pause, not counting waits for
  // the pause's end; 0: no thread has.
  int64_t waited_since_ ABSL_GUARDED_BY(mu_) = 0;
  // The level of the leaky bucket, in turns. An empty bucket resets off_.
  int lost_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t off_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_PYTHON_TURNS_H_
