// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"

namespace tensorflow::multistream {
namespace {

using ReadWriteLock = int (*)(pthread_rwlock_t*);

// Whether a thread that waits for a mutex in the library reports its wait,
// which only the waiting of spinning_locks.h does.
bool MutexShowsWaits(int (*lock)(pthread_mutex_t*)) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  LockWaits shown;
  pthread_mutex_lock(&mutex);
  std::thread waits([&] {
    ShowLockWaitsOfThisThread(&shown);
    lock(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  // With either kind of waiting the thread finally sleeps in the lock (2).
  while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  const bool is_shown = shown.since != 0;
  pthread_mutex_unlock(&mutex);
  waits.join();
  return is_shown;
}

// The same for a reader-writer lock: a writer and a reader.
bool ReadWriteLockShowsWaits(ReadWriteLock read_lock,
                             ReadWriteLock write_lock) {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  LockWaits write_waits, read_waits;
  std::atomic<bool> ends{false};
  pthread_rwlock_rdlock(&lock);
  std::thread writes([&] {
    ShowLockWaitsOfThisThread(&write_waits);
    write_lock(&lock);
    pthread_rwlock_unlock(&lock);
  });
  std::thread reads([&] {
    ShowLockWaitsOfThisThread(&read_waits);
    while (!ends) {
      read_lock(&lock);
      pthread_rwlock_unlock(&lock);
    }
  });
  const auto shown = [](const LockWaits& waits) {
    const absl::Time end = absl::Now() + absl::Seconds(10);
    while (waits.since == 0 && absl::Now() < end) {
    }
    return absl::Now() < end;
  };
  const bool both = shown(write_waits) && shown(read_waits);
  ends = true;
  pthread_rwlock_unlock(&lock);
  writes.join();
  reads.join();
  return both;
}

TEST(DriverLocksTest, TheLibrarysLocksSpinAndOtherLibrariesStayAsTheyAre) {
  constexpr char kLibrary[] = "libdriver_locks_test_library.so";
  const std::string folder = "tensorflow/core/common_runtime/multistream/cuda/";
  void* library = dlopen((folder + kLibrary).c_str(), RTLD_LAZY | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(
      dlsym(library, "LockInLibrary"));
  EXPECT_FALSE(MutexShowsWaits(lock));
  for (int i = 0; i < 2; ++i) {  // a second time changes nothing
    const auto entries = ReplaceLocksIn(kLibrary);
    ASSERT_TRUE(entries.ok()) << entries.status();
    EXPECT_EQ(*entries, 3);
    EXPECT_TRUE(MutexShowsWaits(lock));
  }
  EXPECT_TRUE(ReadWriteLockShowsWaits(
      reinterpret_cast<ReadWriteLock>(dlsym(library, "ReadLockInLibrary")),
      reinterpret_cast<ReadWriteLock>(dlsym(library, "WriteLockInLibrary"))));
  EXPECT_FALSE(MutexShowsWaits(&pthread_mutex_lock));
}

}  // namespace
}  // namespace tensorflow::multistream
