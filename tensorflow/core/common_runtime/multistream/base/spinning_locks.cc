// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"

namespace tensorflow {
namespace multistream {
namespace {

// About 20 microseconds: more than a few launches of other threads.
constexpr int kSpins = 600;
// The later looks, each after the core has been offered to others, in case the
// lock's owner waits for one.
constexpr int kSpinsLater = 80;
// Longer than the machine takes a core from a thread for, now and then, while
// it holds a lock. Shorter, and the waiters' sleep would begin a convoy.
constexpr int64_t kMostSpinningNanos = 3'000'000;
constexpr int64_t kForEverNanos = std::numeric_limits<int64_t>::max() / 2;

// The windows in which readers stand back: the first, and those that take a
// tenth of the time until the next, which comes after twice the time, and at
// last each 0.64 seconds.
constexpr int64_t kFirstWindowNanos = 500'000;
constexpr int64_t kSecondWindowAtNanos = 5'000'000;
constexpr int64_t kMostBetweenWindowsNanos = 640'000'000;

template <class Look>
bool SpinUntil(int64_t most_nanos, Look look) {
  return Spin(kSpins, look) || YieldUntil(most_nanos, kSpinsLater, look);
}

// Where turns are noted, by a hash of the mutex's address. In two cache lines
// each: the processor fetches them in pairs.
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

// While it lives, the thread waits, as others see it; and errno stays.
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
// is rare. One that finds no place is not waited for, as without this.
class WaitingWriters {
 public:
  struct Place {
    std::atomic<const void*> lock{nullptr};
    std::atomic<int64_t> since{0};
  };

  // nullptr: there is none.
  Place* Enter(const void* lock) {
    for (Place& place : places_) {
      const void* free = nullptr;
      // Its own address says that it is taken, and stands for no lock yet.
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

  // Whether a reader of `lock` is to stand back at this moment.
  bool StandBackFor(const void* lock) const {
    // All that a launch pays while nobody waits.
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
// child it may be that of the thread that forked: no lock is this thread's then
// by this id, and the library's own function finds out at the end.
pid_t Self() {
  thread_local const pid_t id = static_cast<pid_t>(syscall(SYS_gettid));
  return id;
}

// Whether the mutex only locks a word. Other kinds (error-checking, robust,
// with a protocol for priorities) do more.
bool IsPlain(const pthread_mutex_t* mutex) {
  // Without the bits for sharing and elision.
  const int kind = mutex->__data.__kind & 0x7f;
  return kind == PTHREAD_MUTEX_NORMAL || kind == PTHREAD_MUTEX_ADAPTIVE_NP ||
         kind == PTHREAD_MUTEX_RECURSIVE;
}

bool IsRecursiveAndMine(const pthread_mutex_t* mutex) {
  return (mutex->__data.__kind & 0x7f) == PTHREAD_MUTEX_RECURSIVE &&
         __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED) == Self();
}

// A look at the word does not take its cache line from the lock's owner, as
// trying to lock it does.
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
    // Whoever waits for one mutex never waits for those of another, whose owner
    // may be waiting for it.
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
    // Windows of several writers may follow each other.
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
  // The last reader wakes it, and hands the lock over.
  if (!got) result = pthread_rwlock_wrlock(lock);
  Writers()->Leave(place);
  return result;
}

}  // namespace multistream
}  // namespace tensorflow
