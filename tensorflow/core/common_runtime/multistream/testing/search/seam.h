// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do the runtime's locks and atomics come under the scheduler's control
// when interleavings are searched (scheduler.h)? `bazel build --config=search`
// includes this file before every source of the runtime. It declares namespaces
// absl and std within namespace multistream, so that `absl::Mutex` and
// `std::atomic` in the runtime are the classes below, and all other names are
// those of the real namespaces. The runtime's sources need no change.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SEAM_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SEAM_H_

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/const_init.h"
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"

// Makes the rules of base/rules.h breakable.
#define TFMS_SEARCHED 1

#define TFMS_HERE                                  \
  ::tensorflow::multistream::search::Place place = \
      ::tensorflow::multistream::search::Place {   \
    __builtin_FILE(), __builtin_LINE()             \
  }

namespace tensorflow::multistream {
namespace search {

// Clock id of a thread's CPU time: this plus the thread's number.
constexpr clockid_t kFirstTaskClock = 1000;

// State of a reader-writer lock.
class LockState {
 public:
  void Lock(Place place) {
    Block([this] { return !writer_ && readers_ == 0; }, "locks", place);
    writer_ = true;
  }
  void LockShared(Place place) {
    Block([this] { return !writer_; }, "locks to read", place);
    ++readers_;
  }
  bool TryLock(Place place) {
    Touch(shared_, "tries to lock", place);
    if (writer_ || readers_ > 0) return false;
    return writer_ = true;
  }
  void Unlock() { writer_ = false; }
  void UnlockShared() { --readers_; }
  // Unlocks whichever side holds the lock.
  void UnlockEither() { writer_ ? Unlock() : UnlockShared(); }
  bool IsLocked() const { return writer_ || readers_ > 0; }
  const Shared& shared() const { return shared_; }

 private:
  void Block(const std::function<bool()>& ready, const char* operation,
             Place place) {
    if (IsSearched()) {
      BlockUntil(shared_, ready, operation, place);
    } else if (!ready()) {
      Found("a lock is held by a thread that has ended, or by nobody");
    }
  }

  Shared shared_;
  bool writer_ = false;
  int readers_ = 0;
};

// `clock`: a thread's, from pthread_getcpuclockid below, or the wall clock.
inline int ClockGetTime(clockid_t clock, timespec* now) {
  const int64_t nanos =
      clock >= kFirstTaskClock ? ClockOf(clock - kFirstTaskClock) : Clock();
  now->tv_sec = nanos / 1'000'000'000;
  now->tv_nsec = nanos % 1'000'000'000;
  return 0;
}

// A thread that the runtime starts, before the program runs or while it does.
// Its destructor waits for its end.
::std::unique_ptr<::tensorflow::Thread> NewThread(std::string name,
                                                  ::std::function<void()> body);

// The state of a TensorFlow or C library lock, by the lock's address.
LockState& StateOf(const void* mutex);

}  // namespace search

namespace absl {

using namespace ::absl;  // NOLINT: all but what is below is Abseil's

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  explicit Mutex(ConstInitType) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock(TFMS_HERE) ABSL_EXCLUSIVE_LOCK_FUNCTION() { state_.Lock(place); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { state_.Unlock(); }
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() {
    if (!state_.IsLocked()) search::Found("a mutex is to be held, and is not");
  }

 private:
  friend class CondVar;
  search::LockState state_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mu, TFMS_HERE) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu)
      : mu_(mu) {
    mu_->Lock(place);
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mu_;
};

// Signal wakes the thread that has waited longest. No spurious wakeups.
class CondVar {
 public:
  void Wait(Mutex* mu, TFMS_HERE) { WaitFor(mu, false, place); }
  // True on timeout.
  bool WaitWithTimeout(Mutex* mu, Duration time, TFMS_HERE) {
    return WaitFor(mu, time != InfiniteDuration(), place);
  }
  bool WaitWithDeadline(Mutex* mu, Time time, TFMS_HERE) {
    return WaitFor(mu, time != InfiniteFuture(), place);
  }
  void Signal(TFMS_HERE) {
    search::Touch(shared_, "signals", place);
    WakeOne();
  }
  void SignalAll(TFMS_HERE) {
    search::Touch(shared_, "signals", place);
    while (!waiting_.empty()) WakeOne();
  }

 private:
  void WakeOne() {
    if (waiting_.empty()) return;
    *waiting_.front() = true;
    waiting_.pop_front();
  }
  bool WaitFor(Mutex* mu, bool may_time_out, search::Place place) {
    search::Touch(shared_, "is about to wait", place);
    bool signalled = false;
    waiting_.push_back(&signalled);
    mu->state_.Unlock();
    // Touches the mutex, because the mutex guards the awaited condition.
    const bool woken = search::BlockUntil(
        mu->state_.shared(),
        [&] { return signalled && !mu->state_.IsLocked(); }, "waits", place,
        may_time_out);
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (*it != &signalled) continue;
      waiting_.erase(it);
      break;
    }
    mu->state_.Lock(place);
    return !woken;
  }

  search::Shared shared_;
  std::deque<bool*> waiting_;
};

class Notification {
 public:
  void Notify(TFMS_HERE) {
    search::Touch(shared_, "notifies", place);
    notified_ = true;
  }
  void WaitForNotification(TFMS_HERE) const {
    if (search::IsSearched()) {
      search::BlockUntil(
          shared_, [this] { return notified_; }, "waits", place);
    } else if (!notified_) {
      search::Found("nobody is left to notify");
    }
  }
  // False on timeout.
  bool WaitForNotificationWithTimeout(Duration, TFMS_HERE) const {
    return search::BlockUntil(
        shared_, [this] { return notified_; }, "waits", place,
        /*may_time_out=*/true);
  }

 private:
  search::Shared shared_;
  bool notified_ = false;
};

inline Time Now() { return UnixEpoch() + Nanoseconds(search::Clock()); }
inline void SleepFor(Duration time, TFMS_HERE) {
  search::Sleep(ToInt64Nanoseconds(time), place);
}

}  // namespace absl

namespace std {

using namespace ::std;  // NOLINT: all but what is below is the standard's

// Relaxed operations are no points of choice: the runtime uses them only for
// statistics, and for values that are checked again under a lock.
template <class T>
class atomic {
 public:
  atomic() = default;
  atomic(T value) : value_(value) {}  // NOLINT: as the standard's
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(memory_order order = memory_order_seq_cst, TFMS_HERE) const {
    Touch("loads", order, place);
    return value_;
  }
  void store(T value, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("stores", order, place);
    value_ = value;
  }
  T exchange(T value, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("exchanges", order, place);
    return ::std::exchange(value_, value);
  }
  bool compare_exchange_strong(T& expected, T value,
                               memory_order = memory_order_seq_cst,
                               memory_order = memory_order_seq_cst, TFMS_HERE) {
    // A point of choice whatever the memory order: the caller acts on the
    // result.
    search::Touch(shared_, "compares", place);
    if (value_ == expected) {
      value_ = value;
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T value,
                             memory_order order = memory_order_seq_cst,
                             memory_order other = memory_order_seq_cst,
                             TFMS_HERE) {
    return compare_exchange_strong(expected, value, order, other, place);
  }
  template <class D>
  T fetch_add(D more, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("adds", order, place);
    const T before = value_;
    value_ += more;
    return before;
  }
  template <class D>
  T fetch_sub(D less, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("subtracts", order, place);
    const T before = value_;
    value_ -= less;
    return before;
  }
  T fetch_or(T bits, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("sets bits", order, place);
    return ::std::exchange(value_, value_ | bits);
  }
  T fetch_and(T bits, memory_order order = memory_order_seq_cst, TFMS_HERE) {
    Touch("clears bits", order, place);
    return ::std::exchange(value_, value_ & bits);
  }
  operator T() const { return load(); }  // NOLINT: as the standard's
  T operator=(T value) {
    store(value);
    return value;
  }
  T operator++() { return fetch_add(1) + 1; }
  T operator++(int) { return fetch_add(1); }
  T operator--() { return fetch_sub(1) - 1; }
  T operator-=(T less) { return fetch_sub(less) - less; }
  T operator+=(T more) { return fetch_add(more) + more; }

 private:
  void Touch(const char* operation, memory_order order,
             search::Place place) const {
    if (order != memory_order_relaxed) {
      search::Touch(shared_, operation, place);
    }
  }

  search::Shared shared_;
  T value_{};
};

namespace this_thread {
using namespace ::std::this_thread;  // NOLINT
inline void yield(TFMS_HERE) { search::Yield(place); }
}  // namespace this_thread

}  // namespace std

// The only TensorFlow locks that the runtime takes are variables'. (Real names
// are macros with an argument, so the classes have other names here.)
namespace search {

class ABSL_SCOPED_LOCKABLE VariableLock {
 public:
  explicit VariableLock(::tensorflow::mutex& mu, TFMS_HERE)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(mu)
      : state_(StateOf(&mu)) {
    state_.Lock(place);
  }
  ~VariableLock() ABSL_UNLOCK_FUNCTION() { state_.Unlock(); }

 private:
  LockState& state_;
};

class ABSL_SCOPED_LOCKABLE SharedVariableLock {
 public:
  explicit SharedVariableLock(::tensorflow::mutex& mu, TFMS_HERE)
      ABSL_SHARED_LOCK_FUNCTION(mu)
      : state_(StateOf(&mu)) {
    state_.LockShared(place);
  }
  ~SharedVariableLock() ABSL_UNLOCK_FUNCTION() { state_.UnlockShared(); }

 private:
  LockState& state_;
};

}  // namespace search

using mutex_lock = search::VariableLock;
using tf_shared_lock = search::SharedVariableLock;

// Threads and locks of the C library. These are function objects, because for
// functions argument-dependent lookup would also find the library's. As in the
// C library, readers enter while a writer waits; and a mutex, which is not
// recursive, has its lock word set while it is locked.
inline constexpr struct {
  int operator()(pthread_t, clockid_t* clock) const {
    *clock = search::kFirstTaskClock + search::ThisTask();
    return 0;
  }
} pthread_getcpuclockid;
inline constexpr struct {
  int operator()(pthread_mutex_t* mutex, TFMS_HERE) const {
    search::StateOf(mutex).Lock(place);
    mutex->__data.__lock = 1;
    return 0;
  }
} pthread_mutex_lock;
inline constexpr struct {
  int operator()(pthread_mutex_t* mutex, TFMS_HERE) const {
    if (!search::StateOf(mutex).TryLock(place)) return EBUSY;
    mutex->__data.__lock = 1;
    return 0;
  }
} pthread_mutex_trylock;
inline constexpr struct {
  int operator()(pthread_mutex_t* mutex) const {
    mutex->__data.__lock = 0;
    search::StateOf(mutex).Unlock();
    return 0;
  }
} pthread_mutex_unlock;
inline constexpr struct {
  int operator()(pthread_rwlock_t* lock, TFMS_HERE) const {
    search::StateOf(lock).LockShared(place);
    return 0;
  }
} pthread_rwlock_rdlock;
inline constexpr struct {
  int operator()(pthread_rwlock_t* lock, TFMS_HERE) const {
    search::StateOf(lock).Lock(place);
    return 0;
  }
} pthread_rwlock_wrlock;
inline constexpr struct {
  int operator()(pthread_rwlock_t* lock, TFMS_HERE) const {
    return search::StateOf(lock).TryLock(place) ? 0 : EBUSY;
  }
} pthread_rwlock_trywrlock;
inline constexpr struct {
  int operator()(pthread_rwlock_t* lock) const {
    search::StateOf(lock).UnlockEither();
    return 0;
  }
} pthread_rwlock_unlock;

// Replacements of the calls in base/spin.h.
inline int sched_yield(TFMS_HERE) {
  search::Yield(place);
  return 0;
}
// A macro, because argument-dependent lookup would find the C library's, too.
#define clock_gettime(clock, now) \
  ::tensorflow::multistream::search::ClockGetTime(clock, now)

}  // namespace tensorflow::multistream

#undef TFMS_HERE

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SEAM_H_
