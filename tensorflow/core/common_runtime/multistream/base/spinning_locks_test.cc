// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"

namespace tensorflow::multistream {
namespace {

constexpr std::chrono::seconds kLongEnough(60);  // on any machine

void Sleep(int micros) {
  std::this_thread::sleep_for(std::chrono::microseconds(micros));
}

// Whether `holds` says true before kLongEnough is over.
bool Await(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kLongEnough;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    Sleep(100);
  }
  return true;
}

class Mutex {
 public:
  explicit Mutex(int kind = PTHREAD_MUTEX_NORMAL) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~Mutex() { pthread_mutex_destroy(&mutex_); }
  pthread_mutex_t* get() { return &mutex_; }

  void Lock() { EXPECT_EQ(SpinningLock(&mutex_), 0); }
  void Unlock() { pthread_mutex_unlock(&mutex_); }
  // The lock's word: 0 if it is free, 2 if a thread sleeps in it, else 1.
  int word() const {
    return __atomic_load_n(&mutex_.__data.__lock, __ATOMIC_RELAXED);
  }

 private:
  pthread_mutex_t mutex_;
};

class ReadWriteLock {
 public:
  ~ReadWriteLock() { pthread_rwlock_destroy(&lock_); }
  pthread_rwlock_t* get() { return &lock_; }

  void LockToRead() { EXPECT_EQ(SpinningReadLock(&lock_), 0); }
  void LockToWrite() { EXPECT_EQ(SpinningWriteLock(&lock_), 0); }
  void Unlock() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
};

// A thread that waits for `lock`, which a reader has, in order to write.
class Writer {
 public:
  explicit Writer(ReadWriteLock* lock)
      : thread_([this, lock] {
          ShowLockWaitsOfThisThread(&waits_);
          lock->LockToWrite();
          lock->Unlock();
        }) {}
  ~Writer() { thread_.join(); }
  bool AwaitWaiting() {
    return Await([this] { return waits_.since != 0; });
  }

 private:
  LockWaits waits_;
  std::thread thread_;
};

// How often this thread has given up its core in order to sleep.
int64_t SleepsOfThisThread() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

constexpr int kKinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                          PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK};

// The owner wakes a sleeping waiter. A waiter that only polls now and then may
// never find the lock free. Other threads see that the thread waits.
TEST(SpinningLocksTest, AThreadThatWaitsForLongSleepsInTheLock) {
  for (int kind : kKinds) {
    Mutex mutex(kind);
    LockWaits shown;
    mutex.Lock();
    std::thread waits([&] {
      ShowLockWaitsOfThisThread(&shown);
      errno = 77;
      mutex.Lock();
      EXPECT_EQ(errno, 77);
      if (kind != PTHREAD_MUTEX_ERRORCHECK) {
        EXPECT_EQ(shown.since, 0);
        EXPECT_GT(shown.longest, 0);
      }
      mutex.Unlock();
    });
    EXPECT_TRUE(Await([&] { return mutex.word() == 2; })) << kind;
    if (kind != PTHREAD_MUTEX_ERRORCHECK) {
      EXPECT_NE(shown.since, 0);
      EXPECT_LE(shown.since, SteadyNanos());
      EXPECT_EQ(shown.longest, 0);
    }
    mutex.Unlock();
    waits.join();
  }
}

// The owner of one mutex may be waiting for the other mutex.
TEST(SpinningLocksTest, WhoLooksAtOneMutexKeepsNobodyFromAnother) {
  constexpr int kMutexes = 10'000;  // many are noted in the same place
  const auto mutexes = std::make_unique<Mutex[]>(kMutexes);
  int looks = 10;
  const TurnToLook turn(mutexes[0].get(), &looks);
  int without_turn = 0;
  for (int i = 1; i < kMutexes; ++i) {
    const TurnToLook other(mutexes[i].get(), &looks);
    ASSERT_EQ(looks, 10) << i;
    without_turn += !other.IsMine();
  }
  EXPECT_GT(without_turn, 0);
  EXPECT_LT(without_turn, kMutexes / 10);
}

// A recursive lock notes its owner by an id that fork() changes.
TEST(SpinningLocksTest, AForkedChildLocksWhatItHasLocked) {
  Mutex mutex(PTHREAD_MUTEX_RECURSIVE);
  mutex.Lock();
  mutex.Unlock();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);  // ends it if it waits for itself
    mutex.Lock();
    mutex.Lock();
    mutex.Unlock();
    mutex.Unlock();
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(SpinningLocksTest, SayWhatTheLockSays) {
  Mutex mutex(PTHREAD_MUTEX_ERRORCHECK);
  mutex.Lock();
  EXPECT_EQ(SpinningLock(mutex.get()), EDEADLK);
  mutex.Unlock();
  ReadWriteLock lock;
  lock.LockToWrite();
  EXPECT_EQ(SpinningWriteLock(lock.get()), EDEADLK);
  EXPECT_EQ(SpinningReadLock(lock.get()), EDEADLK);
  lock.Unlock();
}

// A writer gets in however long readers stay inside; a writer that does not get
// in costs the readers a tenth of their time.
TEST(SpinningLocksTest, WindowsBecomeLongerAndTakeATenthOfTheTime) {
  constexpr int64_t kStep = 10'000;
  int64_t window = 0, longest = 0, standing = 0;
  for (int64_t waited = 0; waited < 10'000'000'000; waited += kStep) {
    if (!ReadersStandBackAfter(waited)) {
      window = 0;
      continue;
    }
    window += kStep;
    standing += kStep;
    longest = std::max(longest, window);
    if (waited >= kStep * 100) {
      ASSERT_LE(standing, waited / 5) << waited;
    }
  }
  EXPECT_TRUE(ReadersStandBackAfter(0));
  EXPECT_EQ(longest, 64'000'000);
  EXPECT_LE(standing, 1'200'000'000);
}

// A thread that reads may read again, although a writer waits for it; and no
// reader of another lock stands back.
TEST(SpinningLocksTest, AWriterThatCannotGetInStopsNoReader) {
  constexpr int kOthers = 1'000, kReads = 20'000;
  ReadWriteLock lock;
  const auto others = std::make_unique<ReadWriteLock[]>(kOthers);
  lock.LockToRead();
  Writer writer(&lock);
  EXPECT_TRUE(writer.AwaitWaiting());
  const int64_t before = SleepsOfThisThread();
  for (int i = 0; i < kOthers; ++i) {
    others[i].LockToRead();
    others[i].Unlock();
  }
  const int64_t between = SleepsOfThisThread();
  EXPECT_LT(between - before, kOthers / 100);
  for (int i = 0; i < kReads; ++i) {
    lock.LockToRead();
    lock.Unlock();
  }
  EXPECT_LT(SleepsOfThisThread() - between, kReads / 10);
  lock.Unlock();
}

// The driver's locks, taken as by launches and by making events, with more
// threads than cores; owners of a lock sleep at random. A launch takes `inner`
// to read inside `outer`. Events do not wait for the end of launches, nor
// launches for that of events.
TEST(SpinningLocksTest, LaunchesAndEventsGoOnWhateverTheOwnersDo) {
  const int launchers = 8 * std::max(2u, std::thread::hardware_concurrency());
  // Two locks that have the same entry of 64 by this hash. Telling locks apart
  // by such an entry stopped all launches under load.
  const auto locks = std::make_unique<ReadWriteLock[]>(4096);
  const auto entry = [&locks](int i) {
    return reinterpret_cast<uintptr_t>(locks[i].get()) * 0x9E3779B97F4A7C15u >>
           58;
  };
  int other = 1;
  while (entry(other) != entry(0)) ++other;
  ReadWriteLock &outer = locks[0], &inner = locks[other];
  Mutex streams[4], shared;
  std::atomic<int64_t> launches{0}, events{0}, torn{0};
  int64_t launches_under_lock = 0;
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < launchers + 2; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      const auto may_sleep = [&random] {
        if (random() % 256 == 0) Sleep(random() % 2000);
      };
      while (!ends) {
        if (i < 2) {
          outer.LockToWrite();
          may_sleep();
          ++events;
          outer.Unlock();
          continue;
        }
        outer.LockToRead();
        const int64_t events_before = events;
        may_sleep();
        streams[i % 4].Lock();
        inner.LockToRead();
        may_sleep();
        shared.Lock();
        may_sleep();
        ++launches;
        ++launches_under_lock;
        shared.Unlock();
        inner.Unlock();
        streams[i % 4].Unlock();
        torn += events != events_before;
        outer.Unlock();
      }
    });
  }
  EXPECT_TRUE(Await([&] { return events >= 40; }))
      << events << " events beside " << launches << " launches";
  const int64_t launches_before = launches;
  EXPECT_TRUE(Await([&] { return launches >= launches_before + 1'000; }))
      << launches - launches_before << " launches";
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(launches_under_lock, launches);
  EXPECT_EQ(torn, 0) << "a writer was inside beside a reader";
}

}  // namespace
}  // namespace tensorflow::multistream
