// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// No memory is released before the stream has completed the work that uses it,
// even if other threads hold and release memory at the same time.

#include "tensorflow/core/common_runtime/multistream/ops/holds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int64_t kMost = StepHolds::kMostBytes;

class HoldsTest : public ::testing::Test {
 protected:
  HoldsTest()
      : gpu_(NewManualGroups(2, &record_, &streams_)), step_(NewStep()) {}

  std::unique_ptr<Step> NewStep() {
    return std::make_unique<Step>(gpu_.get(), group(),
                                  /*changes_state=*/false);
  }
  StreamGroup* group() { return gpu_->group(1); }
  ManualStreamGroup* stream() { return streams_[1]; }
  Tensor Bytes(int64_t bytes) {
    return Tensor(&memory_, DT_UINT8, TensorShape({bytes}));
  }
  // Launches work that holds the only reference to its tensor.
  void Launch(Step* step, int64_t bytes) {
    Holds holds(group(), step);
    Tensor tensor = Bytes(bytes);
    holds.Add(tensor);
    stream()->Use(&memory_, tensor.data());
  }

  WatchedMemory memory_;
  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<Step> step_;
};

// Beyond the byte limit a step releases its enqueued holds, but not the pending
// holds of an op that another thread is launching.
TEST_F(HoldsTest, TheByteLimitTakesNoPendingHold) {
  Tensor tensor = Bytes(8);
  const void* data = tensor.data();
  Holds holds(group(), step_.get());
  holds.Add(std::move(tensor));
  tensor = Tensor();
  Launch(step_.get(), kMost + 1);
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Complete();
  EXPECT_TRUE(memory_.IsInUse(data));
  stream()->Use(&memory_, data);
  holds.Enqueued();
  Launch(step_.get(), kMost + 1);
  EXPECT_EQ(stream()->callbacks(), 2);
  EXPECT_TRUE(memory_.IsInUse(data));
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

// The step releases an earlier op's hold of the same memory.
TEST_F(HoldsTest, TheByteLimitLeavesAPendingHoldOfWhatItReleases) {
  Tensor tensor = Bytes(8);
  const void* data = tensor.data();
  {
    Holds holds(group(), step_.get());
    holds.Add(tensor);
    stream()->Use(&memory_, data);
  }
  Holds holds(group(), step_.get());
  holds.Add(tensor);
  tensor = Tensor();
  Launch(step_.get(), kMost + 1);
  stream()->Complete();
  EXPECT_TRUE(memory_.IsInUse(data));
  stream()->Use(&memory_, data);
  holds.Enqueued();
  step_->holds().ReleaseWhenCompleted(group());
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

// The holds released at the step's end are fixed when the callback is enqueued,
// not when the callback runs.
TEST_F(HoldsTest, TheEndOfAStepReleasesNothingThatComesLater) {
  Launch(step_.get(), 8);
  step_->Finish();
  step_->holds().ReleaseWhenCompleted(group());
  Tensor tensor = Bytes(8);
  const void* data = tensor.data();
  Holds holds(group(), step_.get());
  holds.Add(std::move(tensor));
  tensor = Tensor();
  stream()->Complete();
  EXPECT_TRUE(memory_.IsInUse(data));
  stream()->Use(&memory_, data);
  // The later hold is not kept for ever, either.
  holds.Enqueued();
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

TEST_F(HoldsTest, AStepThatIsDeletedReleasesBehindItsWork) {
  Launch(step_.get(), 8);
  step_.reset();
  EXPECT_EQ(memory_.in_use(), 1);
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

TEST_F(HoldsTest, WithoutAStepTheStreamReleasesBehindTheWork) {
  Launch(nullptr, 8);
  EXPECT_EQ(stream()->callbacks(), 1);
  EXPECT_EQ(memory_.in_use(), 1);
  EXPECT_EQ(gpu_->Stats()[1].tensors_held, 1);
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
  EXPECT_EQ(gpu_->Stats()[1].tensors_held, 0);
}

TEST_F(HoldsTest, WhatIsHeldToTheEndOutlivesTheByteLimit) {
  Tensor list = Bytes(8);
  const void* data = list.data();
  step_->holds().HoldToEnd(group(), list);
  list = Tensor();
  Launch(step_.get(), kMost + 1);
  stream()->Complete();
  EXPECT_TRUE(memory_.IsInUse(data));
  EXPECT_TRUE(step_->holds().HasHolds(group()));
  stream()->Use(&memory_, data);
  step_->holds().ReleaseWhenCompleted(group());
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

TEST_F(HoldsTest, HoldsThatAreMovedAreEnqueuedOnce) {
  Tensor tensor = Bytes(8);
  const void* data = tensor.data();
  Holds first(group(), nullptr);
  first.Add(tensor);
  tensor = Tensor();
  Holds second(std::move(first));
  first.Enqueued();
  EXPECT_EQ(stream()->callbacks(), 0);
  stream()->Use(&memory_, data);
  second.Enqueued();
  second.Enqueued();
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_EQ(memory_.in_use(), 0);
}

// Holds that do not count are kept to the step's end, whatever their size.
TEST_F(HoldsTest, OnlyWhatCountsIsReleasedEarly) {
  {
    Holds holds(group(), step_.get(), /*counts=*/false);
    holds.Add(Bytes(kMost + 1));
  }
  Launch(step_.get(), 8);
  EXPECT_EQ(stream()->callbacks(), 0);
  Launch(step_.get(), kMost);
  EXPECT_EQ(stream()->callbacks(), 1);
}

// Threads launch for two steps on one group, with and without steps. Every
// fourth launch passes the byte limit, and steps end in between.
TEST_F(HoldsTest, ThreadsThatLaunchNeverFreeEachOthersMemory) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 20;
  constexpr int kLaunches = 8;
  for (int round = 0; round < kRounds; ++round) {
    std::unique_ptr<Step> steps[] = {NewStep(), NewStep()};
    // Used by all threads.
    Tensor shared = Bytes(8);
    const void* data = shared.data();
    std::atomic<int> running{kThreads};
    absl::Barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, ours = shared]() mutable {
        start.Block();
        for (int i = 0; i < kLaunches; ++i) {
          Step* step = t == 0 ? nullptr : steps[t % 2].get();
          Holds holds(group(), step);
          Tensor tensor = Bytes(i % 4 == t % 4 ? kMost + 1 : 8);
          holds.Add(tensor);
          holds.Add(ours);
          const void* alone = std::exchange(tensor, Tensor()).data();
          if (i == kLaunches - 1) ours = Tensor();
          std::this_thread::yield();
          stream()->Use(&memory_, alone);
          stream()->Use(&memory_, data);
        }
        running.fetch_sub(1);
      });
    }
    shared = Tensor();
    while (running.load() > 0) stream()->Complete();
    for (std::thread& thread : threads) thread.join();
    for (auto& step : steps) {
      step->Finish();
      step->holds().ReleaseWhenCompleted(group());
    }
    stream()->Complete();
    ASSERT_EQ(stream()->used_too_late(), 0);
    ASSERT_EQ(memory_.in_use(), 0);
    memory_.Recycle();
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
