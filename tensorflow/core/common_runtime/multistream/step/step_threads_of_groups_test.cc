// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which closures of which stream groups do the threads of a process run?

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/pauses.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

// A barrier for a given number of threads.
class Meeting {
 public:
  explicit Meeting(int threads) : missing_(threads) {}
  void Meet() {
    if (--missing_ == 0) all_.Notify();
    all_.WaitForNotification();
  }

 private:
  std::atomic<int> missing_;
  absl::Notification all_;
};

void WaitUntilOneSleepsIn(const pthread_mutex_t& mutex) {
  while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// The `blocked` limit for tests in which a thread that the operating system
// suspends for long must not count as blocked.
constexpr absl::Duration kNever = absl::Hours(1);

class GroupsTest : public ::testing::Test {
 protected:
  StreamGroup* group(int i) const { return groups_->group(i); }
  StreamGroupStats stats(int i) const { return groups_->Stats()[i]; }

  // While a closure of group `i` waits: returns when the watcher has looked for
  // blocked closures. Each look notes a longer wait; the first of the two may
  // have begun too early.
  void AwaitLooks(int i) const {
    for (int look = 0; look < 2; ++look) {
      const int64_t before = stats(i).longest_launch_wait_micros;
      while (stats(i).longest_launch_wait_micros == before) {
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
  }

 private:
  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ = NewFakeGroups(0, 3, &record_);
};

// Captures the log, which is not shown meanwhile. Captures stderr, because some
// releases of TensorFlow do not use Abseil's log.
class WarningsOfWaits {
 public:
  WarningsOfWaits() : log_(std::tmpfile()), before_(dup(STDERR_FILENO)) {
    CHECK(log_ != nullptr && dup2(fileno(log_), STDERR_FILENO) >= 0);
  }
  ~WarningsOfWaits() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    std::fclose(log_);
  }
  WarningsOfWaits(const WarningsOfWaits&) = delete;
  WarningsOfWaits& operator=(const WarningsOfWaits&) = delete;

  std::vector<std::string> texts() {
    std::string all(1 << 16, '\0');
    all.resize(std::max<ssize_t>(
        0, pread(fileno(log_), all.data(), all.size(), /*offset=*/0)));
    std::vector<std::string> texts;
    for (absl::string_view line : absl::StrSplit(all, '\n')) {
      if (absl::StrContains(line, "ops could be launched")) {
        texts.emplace_back(line);
      }
    }
    return texts;
  }

 private:
  std::FILE* const log_;
  const int before_;
};

// The warning comes during the wait, which may last for ever. The warning comes
// once in a process, so no earlier test's steps may wait for so long.
TEST_F(GroupsTest, AStepThatWaitsForTooLongIsSaidOnce) {
  WarningsOfWaits warnings;
  absl::Notification released;
  {
    StepThreads threads(2, 1, 1, kNever);
    threads.Schedule(group(2), [&] { released.WaitForNotification(); });
    threads.Schedule(group(2), [] {});
    const absl::Time end = absl::Now() + kLongEnough;
    while (warnings.texts().empty() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_GE(stats(2).longest_launch_wait_micros, 1'000'000);
    AwaitLooks(2);
    released.Notify();
  }
  const std::vector<std::string> texts = warnings.texts();
  ASSERT_EQ(texts.size(), 1);
  EXPECT_TRUE(absl::StrContains(texts[0], "stream group 2 of GPU 0"))
      << texts[0];
  EXPECT_TRUE(absl::StrContains(texts[0], "TF_GPU_THREAD_MODE")) << texts[0];
}

// Enough closures, overlapping at random, to exceed a limit that is not kept.
TEST_F(GroupsTest, NoMoreOfAGroupRunThanMay) {
  constexpr int kEach = 300;
  constexpr int kMost = 2;
  std::mt19937 random(4);
  std::atomic<int> running[3] = {}, most[3] = {}, ran{0};
  {
    StepThreads threads(8, 1, kMost, kNever);
    for (int i = 0; i < kEach; ++i) {
      for (int g = 0; g < 3; ++g) {
        threads.Schedule(group(g), [&, g, time = random() % 200] {
          const int now = ++running[g];
          RaiseTo(now, &most[g]);
          absl::SleepFor(absl::Microseconds(time));
          --running[g];
          ++ran;
        });
      }
      if (random() % 16 == 0) PauseAtRandom(&random);
    }
  }
  EXPECT_EQ(ran, 3 * kEach);
  for (int g = 0; g < 3; ++g) EXPECT_EQ(most[g], kMost);
}

// Closures of no group in particular have all threads.
TEST_F(GroupsTest, OthersHaveNoSuchLimit) {
  Meeting all(4);
  StepThreads threads(4, 1, 1);
  for (int i = 0; i < 4; ++i) threads.Schedule(nullptr, [&] { all.Meet(); });
}

TEST_F(GroupsTest, AGroupWithMuchToDoKeepsNobodyWaiting) {
  StepThreads threads(2, 1, 1, kNever);
  absl::Notification begun, released, other_ran;
  std::atomic<int> ran{0};
  threads.Schedule(group(0), [&] {
    begun.Notify();
    released.WaitForNotification();
  });
  begun.WaitForNotification();
  for (int i = 0; i < 100; ++i) threads.Schedule(group(0), [&] { ++ran; });
  threads.Schedule(group(1), [&] { other_ran.Notify(); });
  EXPECT_TRUE(other_ran.WaitForNotificationWithTimeout(kLongEnough));
  released.Notify();
}

TEST_F(GroupsTest, AGroupsClosuresRunInOrder) {
  constexpr int kCount = 1000;
  std::vector<int> order;  // one at a time
  {
    StepThreads threads(2, 1, 1, kNever);
    for (int i = 0; i < kCount; ++i) {
      threads.Schedule(group(0), [&order, i] { order.push_back(i); });
    }
  }
  ASSERT_EQ(order.size(), kCount);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// As Python ops that wait for each other.
TEST_F(GroupsTest, ClosuresThatWaitForOthersOfTheirGroupLetThemIn) {
  constexpr int kCount = 6;
  StepThreads threads(kCount, 1, 2);
  for (int round = 0; round < 3; ++round) {
    Meeting all(kCount);
    absl::BlockingCounter ended(kCount);
    for (int i = 0; i < kCount; ++i) {
      threads.Schedule(group(round), [&] {
        all.Meet();
        ended.DecrementCount();
      });
    }
    ended.Wait();
  }
}

// Another closure of the group would only wait for the lock, too.
TEST_F(GroupsTest, AClosureThatWaitsForALockLetsNobodyIn) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  std::atomic<bool> second_ran{false};
  {
    StepThreads threads(2, 1, 1);
    threads.Schedule(group(0), [&] {
      SpinningLock(&mutex);
      EXPECT_FALSE(second_ran);
      pthread_mutex_unlock(&mutex);
    });
    WaitUntilOneSleepsIn(mutex);
    threads.Schedule(group(0), [&] { second_ran = true; });
    AwaitLooks(0);
    // The other thread runs the second closure first, if it was admitted.
    absl::Notification other_ran;
    threads.Schedule(group(1), [&] { other_ran.Notify(); });
    other_ran.WaitForNotification();
    EXPECT_FALSE(second_ran);
    pthread_mutex_unlock(&mutex);
  }
  EXPECT_TRUE(second_ran);
}

TEST_F(GroupsTest, StatsSayWhoWaitsAndForHowLong) {
  constexpr int64_t kMicros = 20'000;
  absl::Notification begun, released;
  StepThreads threads(1, 1, 1);
  threads.Schedule(group(0), [&] {
    begun.Notify();
    released.WaitForNotification();
  });
  begun.WaitForNotification();
  EXPECT_EQ(stats(1).steps_waiting, 0);
  EXPECT_EQ(stats(1).longest_launch_wait_micros, 0);
  absl::BlockingCounter ran(3);
  for (int i = 0; i < 3; ++i) {
    threads.Schedule(
        group(1), [&] { ran.DecrementCount(); },
        /*is_only_group=*/i == 0);
  }
  EXPECT_EQ(stats(1).steps_waiting, 3);
  absl::SleepFor(absl::Microseconds(kMicros));
  released.Notify();
  ran.Wait();
  EXPECT_EQ(stats(1).steps_waiting, 0);
  EXPECT_GE(stats(1).longest_launch_wait_micros, kMicros);
}

TEST_F(GroupsTest, StatsHaveWaitsForLocks) {
  constexpr int64_t kMicros = 20'000;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  {
    StepThreads threads(1, 1, 1);
    threads.Schedule(group(0), [&] {
      SpinningLock(&mutex);
      pthread_mutex_unlock(&mutex);
    });
    WaitUntilOneSleepsIn(mutex);
    absl::SleepFor(absl::Microseconds(kMicros));
    pthread_mutex_unlock(&mutex);
  }
  EXPECT_GE(stats(0).longest_launch_wait_micros, kMicros);
}

// A blocked closure that has admitted another admits no second one at its end.
TEST_F(GroupsTest, WhoWasBlockedCountsOnce) {
  constexpr int kCount = 20;
  constexpr absl::Duration kBlocked = absl::Milliseconds(300);
  StepThreads threads(2, 1, 1, kBlocked);
  for (int round = 0; round < 3; ++round) {
    absl::Notification inside;
    absl::BlockingCounter ended(2 + kCount);
    std::atomic<int> running{0}, too_many{0};
    threads.Schedule(group(0), [&] {
      inside.WaitForNotification();
      ended.DecrementCount();
    });
    threads.Schedule(group(0), [&] {
      inside.Notify();
      ended.DecrementCount();
    });
    inside.WaitForNotification();
    for (int i = 0; i < kCount; ++i) {
      threads.Schedule(group(0), [&] {
        if (++running > 1) {
          ++too_many;
        } else {
          // The other thread first runs closures that were admitted before.
          const absl::Time begun = absl::Now();
          absl::Notification other_ran;
          threads.Schedule(group(1), [&] { other_ran.Notify(); });
          other_ran.WaitForNotification();
          // The thread was suspended for so long that it counted as blocked.
          if (absl::Now() - begun >= kBlocked) too_many = 0;
        }
        --running;
        ended.DecrementCount();
      });
    }
    ended.Wait();
    EXPECT_EQ(too_many, 0);
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
