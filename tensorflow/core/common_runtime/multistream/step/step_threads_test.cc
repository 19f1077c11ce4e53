// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"

#include <time.h>

#include <atomic>
#include <functional>
#include <random>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/testing/pauses.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(StepThreadsTest, RunsAllBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    StepThreads threads(3, 1, 3);
    for (int i = 0; i < 1000; ++i) threads.Schedule(nullptr, [&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(StepThreadsTest, ClosuresRunAtTheSameTime) {
  StepThreads threads(2, 0, 2);
  absl::BlockingCounter both(2);
  absl::Notification released;
  for (int i = 0; i < 2; ++i) {
    threads.Schedule(nullptr, [&both, &released] {
      both.DecrementCount();
      released.WaitForNotification();
    });
  }
  both.Wait();  // neither has returned
  released.Notify();
}

// Closures that always schedule a successor do not starve other threads'
// closures.
TEST(StepThreadsTest, ChainsDoNotStarveNewcomers) {
  constexpr int kChains = 4;
  StepThreads threads(1, 1, 1);
  std::atomic<int> links{0};
  std::atomic<bool> arrived{false};
  std::atomic<int> links_at_arrival{0};
  absl::BlockingCounter ended(kChains);
  std::function<void()> link = [&] {
    ++links;
    if (arrived) {
      ended.DecrementCount();
    } else {
      threads.Schedule(nullptr, link);
    }
  };
  absl::Notification begun;
  absl::Notification given;
  // The thread stands still until all are queued: the order is known.
  threads.Schedule(nullptr, [&] {
    begun.Notify();
    given.WaitForNotification();
  });
  begun.WaitForNotification();
  for (int i = 0; i < kChains; ++i) threads.Schedule(nullptr, link);
  threads.Schedule(nullptr, [&] {
    links_at_arrival = links.load();
    arrived = true;
  });
  given.Notify();
  ended.Wait();
  EXPECT_EQ(links_at_arrival, kChains);
}

constexpr int kRounds = 150;

struct ThreadCounts {
  int count;
  int most_looking;
};

class LookingTest : public ::testing::TestWithParam<ThreadCounts> {};

TEST_P(LookingTest, AThreadTakesWhatItIsGivenAtAnyTime) {
  std::mt19937 random(1);
  StepThreads threads(GetParam().count, GetParam().most_looking,
                      GetParam().count);
  for (int i = 0; i < kRounds; ++i) {
    // Waits for each closure: the next one's wake-up would hide a lost wake-up.
    auto ran = std::make_shared<absl::Notification>();
    threads.Schedule(nullptr, [ran] { ran->Notify(); });
    ASSERT_TRUE(ran->WaitForNotificationWithTimeout(kLongEnough)) << i;
    PauseAtRandom(&random);
  }
}

TEST_P(LookingTest, ABurstRunsWhetherThreadsLookSleepOrFallAsleep) {
  std::mt19937 random(2);
  StepThreads threads(GetParam().count, GetParam().most_looking,
                      GetParam().count);
  for (int i = 0; i < kRounds; ++i) {
    const int size = 1 + random() % 6;
    auto left = std::make_shared<std::atomic<int>>(size);
    auto all_ran = std::make_shared<absl::Notification>();
    for (int k = 0; k < size; ++k) {
      threads.Schedule(nullptr, [left, all_ran] {
        if (--*left == 0) all_ran->Notify();
      });
      if (random() % 4 == 0) PauseAtRandom(&random);
    }
    ASSERT_TRUE(all_ran->WaitForNotificationWithTimeout(kLongEnough))
        << i << ": " << *left << " of " << size << " did not run";
    PauseAtRandom(&random);
  }
}

// A thread that has taken a closure cannot poll for the next one, so it must
// wake another thread.
TEST_P(LookingTest, AsManyRunAtTheSameTimeAsThereAreThreads) {
  std::mt19937 random(3);
  const int count = GetParam().count;
  StepThreads threads(count, GetParam().most_looking, count);
  for (int i = 0; i < kRounds; ++i) {
    auto released = std::make_shared<absl::Notification>();
    auto left = std::make_shared<std::atomic<int>>(count);
    auto all_run = std::make_shared<absl::Notification>();
    for (int k = 0; k < count; ++k) {
      threads.Schedule(nullptr, [left, all_run, released] {
        // Each closure waits until all of them run.
        if (--*left == 0) all_run->Notify();
        released->WaitForNotification();
      });
      if (random() % 4 == 0) PauseAtRandom(&random);
    }
    const bool ran = all_run->WaitForNotificationWithTimeout(kLongEnough);
    const int missing = *left;
    released->Notify();
    ASSERT_TRUE(ran) << i << ": " << missing << " of " << count
                     << " did not begin";
    PauseAtRandom(&random);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Threads, LookingTest,
    ::testing::Values(ThreadCounts{1, 1}, ThreadCounts{2, 0},
                      ThreadCounts{2, 1}, ThreadCounts{3, 1},
                      ThreadCounts{3, 3}),
    [](const ::testing::TestParamInfo<ThreadCounts>& info) {
      return std::to_string(info.param.most_looking) + "Of" +
             std::to_string(info.param.count);
    });

// Two closures that need each other, as two branches of a step that join: one
// thread polls, and a third thread need not wake.
TEST(StepThreadsTest, MoreClosuresThanLookersWakeSleepers) {
  for (int count : {2, 3}) {
    std::mt19937 random(count);
    StepThreads threads(count, 1, count);
    for (int i = 0; i < kRounds; ++i) {
      auto first = std::make_shared<absl::Notification>();
      auto second = std::make_shared<absl::Notification>();
      auto met = std::make_shared<absl::BlockingCounter>(2);
      auto missed = std::make_shared<std::atomic<bool>>(false);
      auto meet = [met, missed](absl::Notification* mine,
                                absl::Notification* other) {
        mine->Notify();
        if (!other->WaitForNotificationWithTimeout(kLongEnough)) {
          *missed = true;
        }
        met->DecrementCount();
      };
      threads.Schedule(nullptr, [=] { meet(first.get(), second.get()); });
      if (random() % 2 == 0) PauseAtRandom(&random);
      threads.Schedule(nullptr, [=] { meet(second.get(), first.get()); });
      met->Wait();
      ASSERT_FALSE(*missed) << i << " with " << count << " threads";
      PauseAtRandom(&random);
    }
  }
}

TEST(StepThreadsTest, AClosureThatHasJustWaitedForALockMayNotWaitForAnother) {
  constexpr int64_t kBlocked = 100;
  LockWaits waits;
  EXPECT_FALSE(StepThreads::MayWaitForAnother(1000, waits, 1099, kBlocked));
  EXPECT_TRUE(StepThreads::MayWaitForAnother(1000, waits, 1100, kBlocked));
  waits.since = 1050;
  EXPECT_FALSE(StepThreads::MayWaitForAnother(1000, waits, 9000, kBlocked));
  waits.since = 0;
  waits.ended = 2000;
  EXPECT_FALSE(StepThreads::MayWaitForAnother(1000, waits, 2099, kBlocked));
  EXPECT_TRUE(StepThreads::MayWaitForAnother(1000, waits, 2100, kBlocked));
}

TEST(StepThreadsTest, ThreadsThatFindNothingSleep) {
  const auto time_of = [](clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return absl::DurationFromTimespec(time);
  };
  const auto by_others = [time_of] {
    return time_of(CLOCK_PROCESS_CPUTIME_ID) - time_of(CLOCK_THREAD_CPUTIME_ID);
  };
  StepThreads threads(4, 4, 2);  // and the watcher's
  absl::BlockingCounter ran(4);
  for (int i = 0; i < 4; ++i)
    threads.Schedule(nullptr, [&] { ran.DecrementCount(); });
  ran.Wait();
  // The threads have stopped polling. While this thread uses a processor for a
  // second, a thread that does not sleep would use about as much.
  constexpr absl::Duration kLong = absl::Seconds(1);
  absl::Duration used = absl::InfiniteDuration();
  for (int i = 0; i < 5 && used > kLong / 4; ++i) {
    const absl::Duration before = by_others();
    const absl::Duration end = time_of(CLOCK_THREAD_CPUTIME_ID) + kLong;
    while (time_of(CLOCK_THREAD_CPUTIME_ID) < end) {
    }
    used = by_others() - before;
  }
  EXPECT_LE(used, kLong / 4);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
