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

#include "tensorflow/core/common_runtime/multistream/step_threads.h"

#include <time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(StepThreadsTest, RunsAllBeforeItEnds) {
  std::atomic<int> ran{0};
  {
    StepThreads threads(3, 1);
    for (int i = 0; i < 1000; ++i) threads.Schedule([&ran] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(StepThreadsTest, ClosuresRunAtTheSameTime) {
  StepThreads threads(2, 0);
  absl::BlockingCounter both(2);
  absl::Notification released;
  for (int i = 0; i < 2; ++i) {
    threads.Schedule([&both, &released] {
      both.DecrementCount();
      released.WaitForNotification();
    });
  }
  both.Wait();  // neither has returned
  released.Notify();
}

// Work that always schedules its successor does not keep out what others give.
TEST(StepThreadsTest, ChainsDoNotStarveNewcomers) {
  constexpr int kChains = 4;
  StepThreads threads(1, 1);
  std::atomic<int> links{0};
  std::atomic<bool> arrived{false};
  std::atomic<int> links_at_arrival{0};
  absl::BlockingCounter ended(kChains);
  std::function<void()> link = [&] {
    ++links;
    if (arrived) {
      ended.DecrementCount();
    } else {
      threads.Schedule(link);
    }
  };
  absl::Notification begun;
  absl::Notification given;
  // The thread stands still until all are queued: the order is known.
  threads.Schedule([&] {
    begun.Notify();
    given.WaitForNotification();
  });
  begun.WaitForNotification();
  for (int i = 0; i < kChains; ++i) threads.Schedule(link);
  threads.Schedule([&] {
    links_at_arrival = links.load();
    arrived = true;
  });
  given.Notify();
  ended.Wait();
  EXPECT_EQ(links_at_arrival, kChains);
}

constexpr int kRounds = 150;
constexpr absl::Duration kLongEnough = absl::Seconds(10);  // on any machine

// Pauses from none to three times as long as a thread looks.
void PauseAtRandom(std::mt19937* random) {
  const absl::Time end = absl::Now() + absl::Microseconds((*random)() % 3000);
  // Now and then without a system call, which would wake this thread late.
  if ((*random)() % 2 == 0) absl::SleepFor(end - absl::Now());
  while (absl::Now() < end) {
  }
}

struct ThreadCounts {
  int count;
  int most_looking;
};

class LookingTest : public ::testing::TestWithParam<ThreadCounts> {};

TEST_P(LookingTest, AThreadTakesWhatItIsGivenAtAnyTime) {
  std::mt19937 random(1);
  StepThreads threads(GetParam().count, GetParam().most_looking);
  for (int i = 0; i < kRounds; ++i) {
    // Each is awaited: what is given next would hide that it was forgotten.
    auto ran = std::make_shared<absl::Notification>();
    threads.Schedule([ran] { ran->Notify(); });
    ASSERT_TRUE(ran->WaitForNotificationWithTimeout(kLongEnough)) << i;
    PauseAtRandom(&random);
  }
}

TEST_P(LookingTest, ABurstRunsWhetherThreadsLookSleepOrFallAsleep) {
  std::mt19937 random(2);
  StepThreads threads(GetParam().count, GetParam().most_looking);
  for (int i = 0; i < kRounds; ++i) {
    const int size = 1 + random() % 6;
    auto left = std::make_shared<std::atomic<int>>(size);
    auto all_ran = std::make_shared<absl::Notification>();
    for (int k = 0; k < size; ++k) {
      threads.Schedule([left, all_ran] {
        if (--*left == 0) all_ran->Notify();
      });
      if (random() % 4 == 0) PauseAtRandom(&random);
    }
    ASSERT_TRUE(all_ran->WaitForNotificationWithTimeout(kLongEnough))
        << i << ": " << *left << " of " << size << " did not run";
    PauseAtRandom(&random);
  }
}

// A thread that has taken a closure cannot look for the next one: it must wake
// another.
TEST_P(LookingTest, AsManyRunAtTheSameTimeAsThereAreThreads) {
  std::mt19937 random(3);
  const int count = GetParam().count;
  StepThreads threads(count, GetParam().most_looking);
  for (int i = 0; i < kRounds; ++i) {
    auto released = std::make_shared<absl::Notification>();
    auto left = std::make_shared<std::atomic<int>>(count);
    auto all_run = std::make_shared<absl::Notification>();
    for (int k = 0; k < count; ++k) {
      threads.Schedule([left, all_run, released] {
        // Each needs the others to be there.
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

// Two closures that need each other, as two branches of a step do that meet
// again: one looker, and a third thread that need not know.
TEST(StepThreadsTest, MoreClosuresThanLookersWakeSleepers) {
  for (int count : {2, 3}) {
    std::mt19937 random(count);
    StepThreads threads(count, 1);
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
      threads.Schedule([=] { meet(first.get(), second.get()); });
      if (random() % 2 == 0) PauseAtRandom(&random);
      threads.Schedule([=] { meet(second.get(), first.get()); });
      met->Wait();
      ASSERT_FALSE(*missed) << i << " with " << count << " threads";
      PauseAtRandom(&random);
    }
  }
}

TEST(StepThreadsTest, ThreadsThatFindNothingSleep) {
  auto processor_time = [] {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  };
  StepThreads threads(4, 4);
  absl::BlockingCounter ran(4);
  for (int i = 0; i < 4; ++i) threads.Schedule([&] { ran.DecrementCount(); });
  ran.Wait();
  absl::SleepFor(absl::Milliseconds(200));
  const absl::Duration before = processor_time();
  absl::SleepFor(absl::Seconds(2));
  EXPECT_LT(processor_time() - before, absl::Seconds(1));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
