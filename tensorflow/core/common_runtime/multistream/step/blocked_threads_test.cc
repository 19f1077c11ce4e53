// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does a queued closure that a blocked closure waits for always get a thread?

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/step/stock_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kStock = 8;
constexpr absl::Duration kLongEnough = absl::Seconds(20);  // on any machine

// How many threads a pool begins with, and how many of them a group may have.
struct Sizes {
  int count;
  int most_of_group;
};

class BlockedThreadsTest : public ::testing::TestWithParam<Sizes> {
 protected:
  std::unique_ptr<StepThreads> NewThreads() const {
    return std::make_unique<StepThreads>(GetParam().count, /*most_looking=*/1,
                                         GetParam().most_of_group);
  }
  StreamGroup* group(int i) const { return groups_->group(i % 3); }

 private:
  const StockThreads stock_{kStock};
  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ = NewFakeGroups(0, 3, &record_);
};

// As Python ops that call functions do.
TEST_P(BlockedThreadsTest, CallsWithinCallsEnd) {
  std::unique_ptr<StepThreads> threads = NewThreads();
  for (int round = 0; round < 10; ++round) {
    // One thread is left for the nested calls.
    absl::BlockingCounter ended(kStock - 1);
    for (int i = 0; i < kStock - 1; ++i) {
      threads->Schedule(group(i), [&, i] {
        for (int k = 0; k < 3; ++k) {
          absl::Notification done;
          threads->Schedule(group(i + k), [&done] { done.Notify(); });
          done.WaitForNotification();
        }
        ended.DecrementCount();
      });
    }
    ended.Wait();
  }
}

TEST_P(BlockedThreadsTest, CallsMayBeAsDeepAsInTensorFlow) {
  std::unique_ptr<StepThreads> threads = NewThreads();
  std::function<void(int)> call = [&](int depth) {
    if (depth == kStock) return;
    absl::Notification done;
    threads->Schedule(group(depth), [&] {
      call(depth + 1);
      done.Notify();
    });
    done.WaitForNotification();
  };
  for (int round = 0; round < 3; ++round) call(0);
}

// As steps that wait for a queue that a later step fills.
TEST_P(BlockedThreadsTest, ClosuresMayWaitForLaterOnes) {
  std::unique_ptr<StepThreads> threads = NewThreads();
  for (int round = 0; round < 3; ++round) {
    std::vector<absl::Notification> filled(kStock);
    absl::BlockingCounter ended(kStock);
    for (int i = 0; i < kStock; ++i) {
      threads->Schedule(
          group(i),
          [&, i] {
            if (i + 1 < kStock) filled[i + 1].WaitForNotification();
            filled[i].Notify();
            ended.DecrementCount();
          },
          /*is_only_group=*/i % 2 == 0);
    }
    ended.Wait();
  }
}

// Closures that poll use a processor, and yet count as blocked.
TEST_P(BlockedThreadsTest, ClosuresMayLookForWhatTheyWaitFor) {
  std::unique_ptr<StepThreads> threads = NewThreads();
  const int count = GetParam().count + 1;
  std::atomic<int> missing{count};
  absl::BlockingCounter ended(count);
  for (int i = 0; i < count; ++i) {
    threads->Schedule(group(i), [&] {
      --missing;
      while (missing > 0) {
      }
      ended.DecrementCount();
    });
  }
  ended.Wait();
}

TEST_P(BlockedThreadsTest, BlockedClosuresFindThreadsWhileThePoolEnds) {
  std::unique_ptr<StepThreads> threads = NewThreads();
  absl::Notification first_runs, last_runs;
  for (int i = 0; i + 1 < kStock; ++i) {
    threads->Schedule(group(i), [&, i] {
      if (i == 0) first_runs.Notify();
      last_runs.WaitForNotification();
    });
  }
  first_runs.WaitForNotification();
  threads->Schedule(group(0), [&] { last_runs.Notify(); });
  threads = nullptr;  // runs all of them first
  EXPECT_TRUE(last_runs.HasBeenNotified());
}

INSTANTIATE_TEST_SUITE_P(Pools, BlockedThreadsTest,
                         ::testing::Values(Sizes{1, 1}, Sizes{2, 2},
                                           Sizes{4, 2}, Sizes{4, 4}),
                         [](const ::testing::TestParamInfo<Sizes>& info) {
                           return std::to_string(info.param.most_of_group) +
                                  "Of" + std::to_string(info.param.count);
                         });

TEST(ThreadsTest, NoMoreClosuresAreBlockedThanInTensorFlow) {
  constexpr int kMost = 4;
  const StockThreads stock(kMost);
  StreamRecord record;
  const std::unique_ptr<GpuGroups> groups = NewFakeGroups(0, 1, &record);
  std::atomic<int> begun{0};
  absl::Notification all_begun, released;
  StepThreads threads(2, 1, 2);
  for (int i = 0; i < kMost + 1; ++i) {
    threads.Schedule(groups->group(0), [&] {
      if (++begun == kMost) all_begun.Notify();
      released.WaitForNotification();
    });
  }
  all_begun.WaitForNotification();
  // The watcher notes how long the last closure waits, after it has looked for
  // blocked closures many times.
  while (begun == kMost &&
         groups->Stats()[0].longest_launch_wait_micros < 1'000'000) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(begun, kMost);
  released.Notify();
}

// More threads than cores would only wait for the driver's locks.
TEST(ThreadsTest, WhereNothingIsBlockedAnyMoreThreadsRest) {
  constexpr int kCount = 2;
  constexpr absl::Duration kWork = absl::Milliseconds(20);
  const StockThreads stock(kStock);
  StepThreads threads(kCount, 1, kCount, /*blocked=*/5 * kWork);
  {
    absl::Notification all_run;
    absl::BlockingCounter ended(kStock);
    std::atomic<int> missing{kStock};
    for (int i = 0; i < kStock; ++i) {
      threads.Schedule(nullptr, [&] {
        if (--missing == 0) all_run.Notify();
        all_run.WaitForNotification();
        ended.DecrementCount();
      });
    }
    ended.Wait();
  }
  const absl::Time end = absl::Now() + kLongEnough;
  std::atomic<int> running{0}, most{0};
  do {
    most = 0;
    absl::BlockingCounter ended(kStock);
    for (int i = 0; i < kStock; ++i) {
      threads.Schedule(nullptr, [&] {
        RaiseTo(++running, &most);
        absl::SleepFor(kWork);
        --running;
        ended.DecrementCount();
      });
    }
    ended.Wait();
  } while (most > kCount && absl::Now() < end);
  EXPECT_EQ(most, kCount);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
