// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/base/spinning_locks.h"
#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/pauses.h"
#include "tensorflow/core/platform/setround.h"

namespace tensorflow::multistream {
namespace {

void WaitUntilOneSleepsIn(const pthread_mutex_t& mutex) {
  while (__atomic_load_n(&mutex.__data.__lock, __ATOMIC_RELAXED) != 2) {
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// The `blocked` limit for tests in which a thread that the operating system
// suspends for long must not count as blocked.
constexpr absl::Duration kNever = absl::Hours(1);

class StepThreadsTest : public ::testing::Test {
 protected:
  StreamGroup* group(int i) const { return groups_->group(i % 3); }
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

int WarningsOfWaits(const std::string& log) {
  const std::vector<std::string> lines = absl::StrSplit(log, '\n');
  return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, "ops could be launched") &&
           absl::StrContains(line, "stream group 2 of GPU 0") &&
           absl::StrContains(line, "TF_GPU_THREAD_MODE");
  });
}

// The warning comes during the wait, which may last for ever. The warning comes
// once in a process, so no earlier test's steps may wait for so long.
TEST_F(StepThreadsTest, AStepThatWaitsForTooLongIsSaidOnce) {
  // Some releases of TensorFlow do not use Abseil's log.
  ::testing::internal::CaptureStderr();
  {
    absl::Notification released;
    StepThreads threads(2, 1, 1, kNever);
    threads.Schedule(group(2), [&] { released.WaitForNotification(); });
    threads.Schedule(group(2), [] {});
    while (stats(2).longest_launch_wait_micros < 1'000'000) AwaitLooks(2);
    AwaitLooks(2);
    EXPECT_EQ(WarningsOfWaits(::testing::internal::GetCapturedStderr()), 1);
    ::testing::internal::CaptureStderr();
    released.Notify();
  }
  EXPECT_EQ(WarningsOfWaits(::testing::internal::GetCapturedStderr()), 0);
}

// As TensorFlow's thread pools do, so that ops of the host give the same bits.
TEST_F(StepThreadsTest, DenormalsAreZeroAndRoundingIsToNearest) {
  const port::ScopedSetRound caller(FE_UPWARD);
  StepThreads threads(1, 1, 1, kNever);
  volatile float smallest = std::numeric_limits<float>::min();
  float tenth = -1;
  int rounding = -1;
  absl::Notification ended;
  threads.Schedule(group(0), [&] {
    tenth = smallest * 0.1f;
    rounding = std::fegetround();
    ended.Notify();
  });
  ended.WaitForNotification();
  EXPECT_EQ(tenth, 0);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

// Closures that always schedule a successor do not starve other threads'
// closures.
TEST_F(StepThreadsTest, ChainsDoNotStarveNewcomers) {
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

// How many threads a pool has, and how many of them poll.
class BurstsTest : public ::testing::TestWithParam<std::tuple<int, int>> {};

// Threads look, sleep or fall asleep when a burst comes. A thread that has
// taken a closure cannot poll for the next one, so it must wake another thread.
TEST_P(BurstsTest, AsManyRunAtTheSameTimeAsThereAreThreads) {
  const auto [count, looking] = GetParam();
  std::mt19937 random(count);
  StepThreads threads(count, looking, /*most_of_group=*/1);
  for (int i = 0; i < 300; ++i) {
    const int size = 1 + random() % count;
    auto missing = std::make_shared<std::atomic<int>>(size);
    auto all_run = std::make_shared<absl::Notification>();
    for (int k = 0; k < size; ++k) {
      // Each closure waits until all of them run.
      threads.Schedule(nullptr, [missing, all_run] {
        if (--*missing == 0) all_run->Notify();
        all_run->WaitForNotificationWithTimeout(kLongEnough);
      });
      if (random() % 4 == 0) PauseAtRandom(&random);
    }
    // Another burst's wake-ups would hide a lost wake-up.
    ASSERT_TRUE(all_run->WaitForNotificationWithTimeout(kLongEnough))
        << i << ": " << *missing << " of " << size << " did not begin";
    PauseAtRandom(&random);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, BurstsTest,
                         ::testing::Values(std::tuple(1, 1), std::tuple(2, 0),
                                           std::tuple(2, 1), std::tuple(3, 1),
                                           std::tuple(3, 3)));

TEST_F(StepThreadsTest, AClosureThatHasJustWaitedForALockMayNotWaitForAnother) {
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

TEST_F(StepThreadsTest, ThreadsThatFindNothingSleep) {
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

// Enough closures, overlapping at random, to exceed a limit that is not kept.
TEST_F(StepThreadsTest, NoMoreOfAGroupRunThanMay) {
  constexpr int kEach = 300;
  constexpr int kMost = 2;
  std::mt19937 random(4);
  std::atomic<int> running[3] = {}, most[3] = {}, ran{0};
  {
    StepThreads threads(8, 1, kMost, kNever);
    for (int i = 0; i < kEach; ++i) {
      for (int g = 0; g < 3; ++g) {
        threads.Schedule(group(g), [&, g, time = random() % 200] {
          RaiseTo(++running[g], &most[g]);
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

TEST_F(StepThreadsTest, AGroupsClosuresRunInOrder) {
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

// Another closure of the group would only wait for the lock, too.
TEST_F(StepThreadsTest, AClosureThatWaitsForALockLetsNobodyIn) {
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

TEST_F(StepThreadsTest, StatsSayWhoWaitsAndForHowLong) {
  constexpr int64_t kMicros = 20'000;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  absl::BlockingCounter ran(3);
  {
    StepThreads threads(1, 1, 1);
    threads.Schedule(group(0), [&] {
      SpinningLock(&mutex);
      pthread_mutex_unlock(&mutex);
    });
    WaitUntilOneSleepsIn(mutex);
    EXPECT_EQ(stats(1).steps_waiting, 0);
    EXPECT_EQ(stats(1).longest_launch_wait_micros, 0);
    for (int i = 0; i < 3; ++i) {
      threads.Schedule(
          group(1), [&] { ran.DecrementCount(); }, /*is_only_group=*/i == 0);
    }
    EXPECT_EQ(stats(1).steps_waiting, 3);
    absl::SleepFor(absl::Microseconds(kMicros));
    pthread_mutex_unlock(&mutex);
    ran.Wait();
    EXPECT_EQ(stats(1).steps_waiting, 0);
  }
  EXPECT_GE(stats(0).longest_launch_wait_micros, kMicros);  // for the lock
  EXPECT_GE(stats(1).longest_launch_wait_micros, kMicros);  // for the thread
}

// A blocked closure that has admitted another admits no second one at its end.
TEST_F(StepThreadsTest, WhoWasBlockedCountsOnce) {
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

constexpr int kStock = 8;

// How many threads a pool begins with, and how many of them a group may have.
class BlockedThreadsTest
    : public StepThreadsTest,
      public ::testing::WithParamInterface<std::tuple<int, int>> {
 protected:
  const StockThreads stock_{kStock};
  std::unique_ptr<StepThreads> threads_ = std::make_unique<StepThreads>(
      std::get<0>(GetParam()), /*most_looking=*/1, std::get<1>(GetParam()));
};

// As Python ops that call functions do.
TEST_P(BlockedThreadsTest, CallsMayBeAsDeepAsInTensorFlow) {
  std::function<void(int)> call = [&](int depth) {
    if (depth == kStock) return;
    absl::Notification done;
    threads_->Schedule(group(depth), [&] {
      call(depth + 1);
      done.Notify();
    });
    done.WaitForNotification();
  };
  for (int round = 0; round < 3; ++round) call(0);
}

// As steps that wait for a queue that a later step fills.
TEST_P(BlockedThreadsTest, ClosuresMayWaitForLaterOnesAlsoWhileThePoolEnds) {
  for (const bool ends : {false, true}) {
    std::vector<absl::Notification> filled(kStock);
    absl::BlockingCounter ended(kStock);
    for (int i = 0; i < kStock; ++i) {
      threads_->Schedule(
          group(i),
          [&, i] {
            if (i + 1 < kStock) filled[i + 1].WaitForNotification();
            filled[i].Notify();
            ended.DecrementCount();
          },
          /*is_only_group=*/i % 2 == 0);
    }
    if (ends) threads_ = nullptr;  // runs all of them first
    ended.Wait();
  }
}

// Closures that poll use a processor, and yet count as blocked.
TEST_P(BlockedThreadsTest, ClosuresMayLookForWhatTheyWaitFor) {
  const int count = std::get<0>(GetParam()) + 1;
  std::atomic<int> missing{count};
  absl::BlockingCounter ended(count);
  for (int i = 0; i < count; ++i) {
    threads_->Schedule(group(i), [&] {
      --missing;
      while (missing > 0) {
      }
      ended.DecrementCount();
    });
  }
  ended.Wait();
}

INSTANTIATE_TEST_SUITE_P(Pools, BlockedThreadsTest,
                         ::testing::Values(std::tuple(1, 1), std::tuple(2, 2),
                                           std::tuple(4, 2), std::tuple(4, 4)));

TEST_F(StepThreadsTest, NoMoreClosuresAreBlockedThanInTensorFlow) {
  constexpr int kMost = 4;
  const StockThreads stock(kMost);
  std::atomic<int> begun{0};
  absl::Notification all_begun, released;
  StepThreads threads(2, 1, 2);
  for (int i = 0; i < kMost + 1; ++i) {
    threads.Schedule(group(0), [&] {
      if (++begun == kMost) all_begun.Notify();
      released.WaitForNotification();
    });
  }
  all_begun.WaitForNotification();
  // The watcher notes how long the last closure waits, after it has looked for
  // blocked closures many times.
  while (begun == kMost && stats(0).longest_launch_wait_micros < 1'000'000) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(begun, kMost);
  released.Notify();
}

// More threads than cores would only wait for the driver's locks.
TEST_F(StepThreadsTest, WhereNothingIsBlockedAnyMoreThreadsRest) {
  constexpr int kCount = 2;
  constexpr absl::Duration kWork = absl::Milliseconds(20);
  const StockThreads stock(kStock);
  StepThreads threads(kCount, 1, kCount, /*blocked=*/5 * kWork);
  const auto run_all = [&](const std::function<void()>& closure) {
    absl::BlockingCounter ended(kStock);
    for (int i = 0; i < kStock; ++i) {
      threads.Schedule(nullptr, [&] {
        closure();
        ended.DecrementCount();
      });
    }
    ended.Wait();
  };
  std::atomic<int> missing{kStock}, running{0}, most{0};
  absl::Notification all_run;
  run_all([&] {
    if (--missing == 0) all_run.Notify();
    all_run.WaitForNotification();
  });
  const absl::Time end = absl::Now() + 2 * kLongEnough;
  do {
    most = 0;
    run_all([&] {
      RaiseTo(++running, &most);
      absl::SleepFor(kWork);
      --running;
    });
  } while (most > kCount && absl::Now() < end);
  EXPECT_EQ(most, kCount);
}

}  // namespace
}  // namespace tensorflow::multistream
