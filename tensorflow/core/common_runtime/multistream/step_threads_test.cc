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

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
