// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/path.h"

namespace tensorflow {
namespace multistream {
namespace {

// An import table can be changed only once in a process, so each test loads its
// own copy of the library, under another name.
class DriverLocksTest : public ::testing::Test {
 protected:
  using Lock = int (*)(pthread_mutex_t*);
  using ReadWriteLock = int (*)(pthread_rwlock_t*);

  void SetUp() override {
    library_ = std::string("driver_locks_test_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name();
    const std::string copy =
        io::JoinPath(::testing::TempDir(), library_ + ".so.1");
    const std::string original =
        "tensorflow/core/common_runtime/multistream/cuda/"
        "libdriver_locks_test_library.so";
    ASSERT_TRUE(Env::Default()->CopyFile(original, copy).ok());
    handle_ = dlopen(copy.c_str(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
    lock_ = reinterpret_cast<Lock>(dlsym(handle_, "LockInLibrary"));
    ASSERT_NE(lock_, nullptr);
    read_lock_ =
        reinterpret_cast<ReadWriteLock>(dlsym(handle_, "ReadLockInLibrary"));
    ASSERT_NE(read_lock_, nullptr);
    write_lock_ =
        reinterpret_cast<ReadWriteLock>(dlsym(handle_, "WriteLockInLibrary"));
    ASSERT_NE(write_lock_, nullptr);
  }
  void TearDown() override {
    if (handle_ != nullptr) dlclose(handle_);
  }

  // Whether a thread that waits for a mutex in the library reports its wait,
  // which only the waiting of spinning_locks.h does.
  bool MutexShowsWaits() {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    LockWaits shown;
    pthread_mutex_lock(&mutex);
    std::thread waits([&] {
      ShowLockWaitsOfThisThread(&shown);
      lock_(&mutex);
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
  bool ReadWriteLockShowsWaits() {
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    LockWaits write_waits, read_waits;
    std::atomic<bool> ends{false};
    pthread_rwlock_rdlock(&lock);
    std::thread writes([&] {
      ShowLockWaitsOfThisThread(&write_waits);
      write_lock_(&lock);
      pthread_rwlock_unlock(&lock);
    });
    std::thread reads([&] {
      ShowLockWaitsOfThisThread(&read_waits);
      while (!ends) {
        read_lock_(&lock);
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

  std::string library_;
  void* handle_ = nullptr;
  Lock lock_ = nullptr;
  ReadWriteLock read_lock_ = nullptr;
  ReadWriteLock write_lock_ = nullptr;
};

TEST_F(DriverLocksTest, NamesALibraryThatIsNotLoaded) {
  const auto entries = ReplaceLocksIn("libnone.so");
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(entries.status().message().find("libnone.so"), std::string::npos);
}

TEST_F(DriverLocksTest, TheLibrarysLocksSpin) {
  EXPECT_FALSE(MutexShowsWaits());
  const auto entries = ReplaceLocksIn(library_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, 3);
  EXPECT_TRUE(MutexShowsWaits());
  EXPECT_TRUE(ReadWriteLockShowsWaits());
}

TEST_F(DriverLocksTest, OtherLibrariesStayAsTheyAre) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  lock_ = &pthread_mutex_lock;
  EXPECT_FALSE(MutexShowsWaits());
}

TEST_F(DriverLocksTest, ASecondTimeChangesNothing) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  const auto entries = ReplaceLocksIn(library_);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(*entries, 3);
  EXPECT_TRUE(MutexShowsWaits());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
