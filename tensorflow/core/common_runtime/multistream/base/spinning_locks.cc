// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"

namespace tensorflow::multistream {
namespace {

// About 20 microseconds: more than a few launches of other threads.
constexpr int kSpins = 600;
// Looks between yields. Yields help if the lock's owner waits for this core.
constexpr int kSpinsLater = 80;
// Longer than the operating system sometimes preempts the owner of a lock. If
// shorter, the waiters would sleep then, and begin a convoy.
constexpr int64_t kMostSpinningNanos = 3'000'000;
constexpr int64_t kForEverNanos = std::numeric_limits<int64_t>::max() / 2;

// The windows in which readers stand back. After the first, a window begins at
// 5 ms, 10 ms, 20 ms, ... and at last every 0.64 s; each takes a tenth of the
// time until the next.
constexpr int64_t kFirstWindowNanos = 500'000;
constexpr int64_t kSecondWindowAtNanos = 5'000'000;
constexpr int64_t kMostBetweenWindowsNanos = 640'000'000;

template <class Look>
bool SpinUntil(int64_t most_nanos, Look look) {
  return Spin(kSpins, look) || YieldUntil(most_nanos, kSpinsLater, look);
}

// The mutex whose turn is taken, by a hash of its address. Each Place has two
// cache lines, because the processor fetches lines in pairs.
struct alignas(128) Place {
  std::atomic<const void*> mutex{nullptr};
};

std::atomic<const void*>* PlaceOf(const void* mutex) {
  static Place places[256];
  const auto address = reinterpret_cast<uintptr_t>(mutex);
  return &places[(address >> 3 ^ address >> 11 ^ address >> 19) % 256].mutex;
}

LockWaits*& ShownHere() {
  thread_local LockWaits* waits = nullptr;
  return waits;
}

// Notes a wait in the thread's LockWaits, and restores errno at its end.
class Waiting {
 public:
  Waiting() : shown_(ShownHere()) {
    if (shown_ == nullptr) return;
    since_ = SteadyNanos();
    shown_->since.store(since_, std::memory_order_relaxed);
  }
  ~Waiting() {
    if (shown_ != nullptr) {
      const int64_t ended = SteadyNanos();
      shown_->ended.store(ended, std::memory_order_relaxed);
      shown_->since.store(0, std::memory_order_release);
      const int64_t waited = ended - since_;
      if (waited > shown_->longest.load(std::memory_order_relaxed)) {
        shown_->longest.store(waited, std::memory_order_relaxed);
      }
    }
    errno = error_;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  const int error_ = errno;
  LockWaits* const shown_;
  int64_t since_ = 0;
};

// The writers that wait, each for one lock. Few wait at once: making an event
// is rare. If all places are taken, readers do not stand back for the writer.
class WaitingWriters {
 public:
  struct Place {
    std::atomic<const void*> lock{nullptr};
    std::atomic<int64_t> since{0};
  };

  // nullptr: all places are taken.
  Place* Enter(const void* lock) {
    for (Place& place : places_) {
      const void* free = nullptr;
      // The place's own address reserves the place, until `since` is written.
      if (place.lock.compare_exchange_strong(free, &place,
                                             std::memory_order_relaxed)) {
        place.since.store(SteadyNanos(), std::memory_order_relaxed);
        place.lock.store(lock, std::memory_order_release);
        count_.fetch_add(1, std::memory_order_relaxed);
        return &place;
      }
    }
    return nullptr;
  }

  void Leave(Place* place) {
    if (place == nullptr) return;
    count_.fetch_sub(1, std::memory_order_relaxed);
    place->lock.store(nullptr, std::memory_order_release);
  }

  // Whether a reader of `lock` has to stand back at this moment.
  bool StandBackFor(const void* lock) const {
    // Without waiting writers, a launch pays no more than this load.
    if (count_.load(std::memory_order_relaxed) == 0 ||
        !IsKept(Rule::kReadersStandBackForAWriter)) {
      return false;
    }
    for (const Place& place : places_) {
      const void* writers = place.lock.load(std::memory_order_acquire);
      if (IsKept(Rule::kReadersStandBackForTheirOwnLocksWriter)
              ? writers != lock
              : writers == nullptr) {
        continue;
      }
      const int64_t waited =
          SteadyNanos() - place.since.load(std::memory_order_relaxed);
      if (ReadersStandBackAfter(waited)) return true;
    }
    return false;
  }

 private:
  std::atomic<int> count_{0};
  Place places_[16];
};

WaitingWriters* Writers() {
  static WaitingWriters writers;
  return &writers;
}

#if defined(__GLIBC__)
// The thread's id, as the GNU C library notes a lock's owner. In a fork()ed
// child the cached id may be the forking thread's. Then no lock seems to be
// this thread's, and pthread_mutex_lock, called in the end, finds the owner.
pid_t Self() {
  thread_local const pid_t id = static_cast<pid_t>(syscall(SYS_gettid));
  return id;
}

// Whether locking the mutex only locks a word. Other kinds (error-checking,
// robust, with priority inheritance or ceiling) do more.
bool IsPlain(const pthread_mutex_t* mutex) {
  // Ignores the bits for process sharing and lock elision.
  const int kind = mutex->__data.__kind & 0x7f;
  return kind == PTHREAD_MUTEX_NORMAL || kind == PTHREAD_MUTEX_ADAPTIVE_NP ||
         kind == PTHREAD_MUTEX_RECURSIVE;
}

bool IsRecursiveAndMine(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & 0x7f) == PTHREAD_MUTEX_RECURSIVE &&
         __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == Self();
}

// A trylock takes the cache line from the lock's owner; a plain load does not.
bool LooksFree(const pthread_mutex_t* mutex) {
  return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 0;
}
#else
bool IsPlain(const pthread_mutex_t*) { return false; }
bool IsRecursiveAndMine(const pthread_mutex_t*) { return false; }
bool LooksFree(const pthread_mutex_t*) { return true; }
#endif

}  // namespace

bool ReadersStandBackAfter(int64_t nanos) {
  if (!IsKept(Rule::kStandingBackEnds)) return true;
  if (nanos < kFirstWindowNanos) return true;
  if (nanos >= kMostBetweenWindowsNanos) {
    return nanos % kMostBetweenWindowsNanos < kMostBetweenWindowsNanos / 10;
  }
  int64_t window = kSecondWindowAtNanos;
  while (2 * window <= nanos) window *= 2;
  return window <= nanos && nanos < window + window / 10;
}

TurnToLook::TurnToLook(const void* mutex, int* looks) {
  std::atomic<const void*>* place = PlaceOf(mutex);
  for (; *looks > 0; --*looks) {
    const void* now = place->load(std::memory_order_relaxed);
    if (now == nullptr && (place->compare_exchange_strong(
                               now, mutex, std::memory_order_relaxed) ||
                           !IsKept(Rule::kOneLooksAtATime))) {
      place_ = place;
      return;
    }
    // Another mutex with the same hash has the place. Do not wait for its
    // waiters: its owner may be waiting for this mutex.
    if (now != mutex) return;
    Pause();
  }
}

TurnToLook::~TurnToLook() {
  if (place_ != nullptr && IsKept(Rule::kTheTurnToLookIsGivenOn)) {
    place_->store(nullptr, std::memory_order_relaxed);
  }
}

void ShowLockWaitsOfThisThread(LockWaits* waits) { ShownHere() = waits; }

int SpinningLock(pthread_mutex_t* mutex) {
  if (!IsPlain(mutex) || IsRecursiveAndMine(mutex)) {
    return pthread_mutex_lock(mutex);
  }
  int result = EBUSY;
  const auto try_lock = [mutex, &result] {
    if (!LooksFree(mutex)) return false;
    result = pthread_mutex_trylock(mutex);
    return result != EBUSY;
  };
  if (try_lock()) return result;
  const Waiting waiting;
  int looks = kSpins;
  {
    const TurnToLook turn(mutex, &looks);
    if (Spin(looks, try_lock)) return result;
  }
  if (YieldUntil(IsKept(Rule::kWhoSpinsForLongSleepsInTheLock)
                     ? kMostSpinningNanos
                     : kForEverNanos,
                 kSpinsLater, try_lock)) {
    return result;
  }
  return pthread_mutex_lock(mutex);
}

int SpinningReadLock(pthread_rwlock_t* lock) {
  if (Writers()->StandBackFor(lock)) {
    const Waiting waiting;
    // Longer than one window: windows of several writers may follow each other.
    SpinUntil(kMostBetweenWindowsNanos / 10,
              [&] { return !Writers()->StandBackFor(lock); });
  }
  return pthread_rwlock_rdlock(lock);
}

int SpinningWriteLock(pthread_rwlock_t* lock) {
  int result = pthread_rwlock_trywrlock(lock);
  if (result != EBUSY) return result;
  const Waiting waiting;
  WaitingWriters::Place* place = Writers()->Enter(lock);
  const bool got = SpinUntil(kFirstWindowNanos, [&] {
    result = pthread_rwlock_trywrlock(lock);
    return result != EBUSY;
  });
  // Sleeps: the last reader wakes this thread and hands the lock over.
  if (!got) result = pthread_rwlock_wrlock(lock);
  Writers()->Leave(place);
  return result;
}

}  // namespace tensorflow::multistream
