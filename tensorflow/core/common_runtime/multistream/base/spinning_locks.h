// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a thread wait for a lock that is held for a microsecond, a million
// times a second, by as many threads as there are cores?
//
// It spins, then yields its core between looks, and after a few milliseconds
// sleeps in the lock, where the owner wakes it. Spinning is what makes it fast:
// a thread that sleeps has to be woken by the owner, which takes longer than
// the lock is held for, so once enough threads sleep, all sleep once a launch
// (a lock convoy). Sleeping at the end is what makes it safe: whatever the
// owner does, the waiter is woken, and takes no core meanwhile.
//
// Of those that spin for a mutex, one looks at it, the others wait for their
// turn to look. Each look takes the cache line from the owner, who needs it to
// unlock; where all looked, the owner's time in the lock became longer with
// each of them. It was worst, half the throughput, where the address that the
// driver's memory came to has the mutex's word in one cache line and the rest
// of it in the next.
//
// Read-write locks of the GNU C library let readers in while a writer waits.
// Where there is always a reader, a writer would wait until the load ends. So
// readers stand back while a writer waits for that very lock:
//
//   writer   waits since 0 [back]  5 ms [back]  10 ms [back]      20 ms ...
//   readers  --------------      -------      --------      ----------
//
// Usually the readers inside leave within the first such window, half a
// millisecond, and the writer is in. Windows end, so that a reader whom others
// need (the lock's owner may wait for something that the reader has) is
// delayed, never stopped; and they take a tenth of the time, so that a writer
// that cannot get in does no more harm than that. They become longer, so that
// it does get in where readers stay inside for longer.
//
// A reader stands back for the writers of its own lock only. Where locks were
// told apart by a hash, a reader inside one lock stood back at another for the
// very writer that waited for it to leave: no writer ever got in, and each
// launch took the time of standing back, for as long as there was any load.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>

namespace tensorflow {
namespace multistream {

// pthread_mutex_lock, pthread_rwlock_rdlock and pthread_rwlock_wrlock, waiting
// as said above. The lock may be any that the GNU C library makes; it may be
// locked and unlocked by that library's own functions, too. errno stays.
int SpinningLock(pthread_mutex_t* mutex);
int SpinningReadLock(pthread_rwlock_t* lock);
int SpinningWriteLock(pthread_rwlock_t* lock);

// The turn to look at a mutex: one thread's at a time, unless the turn comes
// too late or another mutex has the place where it is noted. Whoever has it
// looks only, and waits for nothing else meanwhile.
class TurnToLook {
 public:
  // Waits for the turn, `*looks` times as long as a look takes at most, and
  // takes those it has waited for from it.
  TurnToLook(const void* mutex, int* looks);
  ~TurnToLook();
  TurnToLook(const TurnToLook&) = delete;
  TurnToLook& operator=(const TurnToLook&) = delete;

  bool IsMine() const { return place_ != nullptr; }

 private:
  std::atomic<const void*>* place_ = nullptr;
};

// What a thread shows to others of its waits for such locks, in nanoseconds.
struct LockWaits {
  std::atomic<int64_t> since{0};    // of the steady clock; 0: it does not wait
  std::atomic<int64_t> longest{0};  // that has ended
  std::atomic<int64_t> ended{0};    // the last one, of the steady clock
};
// From now on the calling thread shows its waits in `waits`; nullptr: nowhere.
void ShowLockWaitsOfThisThread(LockWaits* waits);

// Whether readers stand back for a writer that has waited for so long.
bool ReadersStandBackAfter(int64_t nanos);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPINNING_LOCKS_H_
