// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a thread wait for a lock that is held for a microsecond, a million
// times a second, by as many threads as there are cores?
//
// The thread spins, then yields its core between looks, and after a few
// milliseconds sleeps in the lock until the owner wakes it. Spinning is fast:
// waking a sleeper takes the owner longer than the lock is held, so once enough
// threads sleep, all sleep once a launch (a lock convoy). Sleeping at the end
// is safe: the waiter is woken whatever the owner does, and takes no core.
//
// Of the threads that spin for a mutex, one looks at the mutex; the others wait
// for their turn. Each look takes the cache line that the owner needs to unlock
// the mutex. With all threads looking, the throughput halved where the mutex
// straddled two cache lines.
//
// The GNU C library's reader-writer locks admit readers while a writer waits,
// so that a writer may wait until the load ends. So readers stand back, in time
// windows, while a writer waits for the same lock:
//
//   writer   waits since 0 [back]  5 ms [back]  10 ms [back]      20 ms ...
//   readers  --------------      -------      --------      ----------
//
// Usually the writer gets the lock within the first window, half a millisecond.
// Windows end, so that a reader that has something the lock's owner waits for
// is delayed, never stopped. They take a tenth of the time, which bounds the
// cost of a writer that cannot get in, and become longer for readers that stay
// inside for longer.
//
// Locks must not be told apart by a hash: a reader inside one lock would stand
// back at another lock for the very writer that waits for this reader to leave.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace tensorflow::multistream {

// pthread_mutex_lock, pthread_rwlock_rdlock and pthread_rwlock_wrlock, waiting
// as said above. They work on any lock of the GNU C library, even if other code
// uses the library's functions on the same lock. They do not change errno.
int SpinningLock(pthread_mutex_t* mutex);
int SpinningReadLock(pthread_rwlock_t* lock);
int SpinningWriteLock(pthread_rwlock_t* lock);

// The turn to look at a mutex. One thread has it at a time, unless a thread
// waits too long, or another mutex with the same hash has the place where the
// turn is noted. A thread with the turn only looks and waits for nothing else.
class TurnToLook {
 public:
  // Waits for the turn, for at most `*looks` looks; subtracts the looks used.
  TurnToLook(const void* mutex, int* looks);
  ~TurnToLook();
  TurnToLook(const TurnToLook&) = delete;
  TurnToLook& operator=(const TurnToLook&) = delete;

  bool IsMine() const { return place_ != nullptr; }

 private:
  std::atomic<const void*>* place_ = nullptr;
};

// A thread's waits for spinning locks, for other threads to read. Nanoseconds
// of the steady clock.
struct LockWaits {
  std::atomic<int64_t> since{0};    // begin of the present wait; 0: none
  std::atomic<int64_t> longest{0};  // duration of the longest ended wait
  std::atomic<int64_t> ended{0};    // end of the last wait
};
// From now on the calling thread notes its waits in `waits`; nullptr: nowhere.
void ShowLockWaitsOfThisThread(LockWaits* waits);

// Whether readers stand back for a writer that has waited for `nanos`.
bool ReadersStandBackAfter(int64_t nanos);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_
