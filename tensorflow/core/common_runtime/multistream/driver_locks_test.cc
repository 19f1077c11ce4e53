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
};

TEST_F(DriverLocksTest, NamesALibraryThatIsNotLoaded) {
  const auto entries = SpinBeforeSleepIn("libnone.so");
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(entries.status().message().find("libnone.so"), std::string::npos);
}

TEST_F(DriverLocksTest, WhoWaitsNoLongerSleepsInTheLock) {
  for (int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE}) {
    Mutex mutex(kind);
    EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 2) << kind;
  }
  const auto entries = SpinBeforeSleepIn(library_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(*entries, 1);
  for (int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE}) {
    Mutex mutex(kind);
    EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 1) << kind;
  }
}

TEST_F(DriverLocksTest, OtherLibrariesStayAsTheyAre) {
  ASSERT_TRUE(SpinBeforeSleepIn(library_).ok());
  lock_ = &pthread_mutex_lock;
  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 2);
}

TEST_F(DriverLocksTest, ASecondTimeChangesNothing) {
  ASSERT_TRUE(SpinBeforeSleepIn(library_).ok());
  const auto entries = SpinBeforeSleepIn(library_);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(*entries, 1);
  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  EXPECT_EQ(WordWhileWaiting(&mutex.mutex), 1);
}

TEST_F(DriverLocksTest, StillExcludes) {
  ASSERT_TRUE(SpinBeforeSleepIn(library_).ok());
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
  ASSERT_TRUE(SpinBeforeSleepIn(library_).ok());
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
