/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/driver_locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/path.h"

namespace tensorflow {
namespace multistream {
namespace {

// The import table is changed once a process, so each test takes a copy of the
// library, under a name of its own.
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
        "tensorflow/core/common_runtime/multistream/"
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

  // The lock's word while a thread waits for it in the library: 1 if nobody
  // sleeps in the lock, 2 if somebody does.
  int WordWhileWaiting(pthread_mutex_t* mutex) {
    pthread_mutex_lock(mutex);
    std::thread waits([&] {
      lock_(mutex);
      pthread_mutex_unlock(mutex);
    });
    absl::SleepFor(absl::Milliseconds(200));
    const int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
    pthread_mutex_unlock(mutex);
    waits.join();
    return word;
  }

  // In how many of `times` a writer that waits for a reader gets the lock
  // before a reader that comes later.
  int WriterIsFirst(int times) {
    int first = 0;
    for (int i = 0; i < times; ++i) {
      pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
      std::atomic<int> order{0};
      int writer = 0, reader = 0;
      pthread_rwlock_rdlock(&lock);
      std::thread writes([&] {
        write_lock_(&lock);
        writer = ++order;
        pthread_rwlock_unlock(&lock);
      });
      absl::SleepFor(absl::Milliseconds(5));
      std::atomic<bool> comes{false};
      std::thread reads([&] {
        comes = true;
        read_lock_(&lock);
        reader = ++order;
        pthread_rwlock_unlock(&lock);
      });
      while (!comes) std::this_thread::yield();
      // Long enough for a reader that does not stand back.
      absl::SleepFor(absl::Microseconds(300));
      pthread_rwlock_unlock(&lock);
      writes.join();
      reads.join();
      first += writer < reader;
    }
    return first;
  }

  struct Mutex {
    explicit Mutex(int kind) {
      pthread_mutexattr_t attributes;
      pthread_mutexattr_init(&attributes);
      pthread_mutexattr_settype(&attributes, kind);
      pthread_mutex_init(&mutex, &attributes);
      pthread_mutexattr_destroy(&attributes);
    }
    ~Mutex() { pthread_mutex_destroy(&mutex); }
    pthread_mutex_t mutex;
  };

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

TEST_F(DriverLocksTest, WhoWaitsNoLongerSleepsInTheLock) {
  for (int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE}) {
    Mutex mutex(kind);
    EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 2) << kind;
  }
  const auto entries = ReplaceLocksIn(library_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, 3);
  for (int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE}) {
    Mutex mutex(kind);
    EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 1) << kind;
  }
}

TEST_F(DriverLocksTest, OtherLibrariesStayAsTheyAre) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  lock_ = &pthread_mutex_lock;
  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 2);
}

TEST_F(DriverLocksTest, ASecondTimeChangesNothing) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  const auto entries = ReplaceLocksIn(library_);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(*entries, 3);
  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 1);
}

TEST_F(DriverLocksTest, StillExcludes) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  for (int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
                   PTHREAD_MUTEX_ADAPTIVE_NP, PTHREAD_MUTEX_ERRORCHECK}) {
    Mutex mutex(kind);
    int64_t count = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 20'000; ++k) {
          lock_(&mutex.mutex);
          if (kind == PTHREAD_MUTEX_RECURSIVE) lock_(&mutex.mutex);
          ++count;
          if (kind == PTHREAD_MUTEX_RECURSIVE) {
            pthread_mutex_unlock(&mutex.mutex);
          }
          pthread_mutex_unlock(&mutex.mutex);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count, 8 * 20'000) << kind;
  }
}

TEST_F(DriverLocksTest, SaysWhatTheLockSays) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  Mutex checks(PTHREAD_MUTEX_ERRORCHECK);
  EXPECT_EQ(lock_(&checks.mutex), 0);
  EXPECT_EQ(lock_(&checks.mutex), EDEADLK);
  pthread_mutex_unlock(&checks.mutex);

  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  pthread_mutex_lock(&mutex.mutex);
  std::thread waits([&] {
    errno = 77;
    EXPECT_EQ(lock_(&mutex.mutex), 0);
    EXPECT_EQ(errno, 77);
    pthread_mutex_unlock(&mutex.mutex);
  });
  absl::SleepFor(absl::Milliseconds(50));
  pthread_mutex_unlock(&mutex.mutex);
  waits.join();
}

TEST_F(DriverLocksTest, WritersGoFirst) {
  // The reader does not always come while the writer waits: a few may differ.
  EXPECT_LE(WriterIsFirst(20), 5);
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  EXPECT_GE(WriterIsFirst(20), 15);
}

// A thread that reads may read again, although a writer waits for it.
TEST_F(DriverLocksTest, ReadLocksNest) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  ASSERT_EQ(read_lock_(&lock), 0);
  std::thread writes([&] {
    EXPECT_EQ(write_lock_(&lock), 0);
    pthread_rwlock_unlock(&lock);
  });
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(read_lock_(&lock), 0);
  pthread_rwlock_unlock(&lock);
  pthread_rwlock_unlock(&lock);
  writes.join();
}

TEST_F(DriverLocksTest, ReadWriteLocksExcludeAndSayWhatTheLockSays) {
  ASSERT_TRUE(ReplaceLocksIn(library_).ok());
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  int64_t a = 0, b = 0;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5'000; ++k) {
        if (i < 3) {
          write_lock_(&lock);
          ++a;
          ++b;
        } else {
          read_lock_(&lock);
          torn += a != b;
        }
        pthread_rwlock_unlock(&lock);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a, 3 * 5'000);
  EXPECT_EQ(b, a);
  EXPECT_EQ(torn, 0);

  ASSERT_EQ(write_lock_(&lock), 0);
  EXPECT_EQ(write_lock_(&lock), EDEADLK);
  EXPECT_EQ(read_lock_(&lock), EDEADLK);
  pthread_rwlock_unlock(&lock);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
