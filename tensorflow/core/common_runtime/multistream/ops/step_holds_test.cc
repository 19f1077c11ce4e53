// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

using Calls = std::vector<std::string>;

constexpr int kGroups = 4;

Tensor Bytes(int64_t bytes) { return Tensor(DT_UINT8, TensorShape({bytes})); }

// Whether the test's reference to the memory is not the only one: a change
// would have to make a copy.
bool IsHeld(const Tensor& tensor) { return !tensor.RefCountIsOne(); }

class StepHoldsTest : public ::testing::Test {
 protected:
  StepHoldsTest() {
    gpu_ = NewManualGroups(kGroups, &record_, &streams_);
    order_ = std::make_unique<StreamOrder>(gpu_.get(), /*reduce=*/true);
    step_ = NewStep(order_.get());
  }

  std::unique_ptr<Step> NewStep(StreamOrder* order) {
    return std::make_unique<Step>(gpu_.get(), gpu_->leader(),
                                  /*changes_state=*/true, order);
  }
  // Holds `tensors` for work that is enqueued on the group.
  void Keep(int group, const std::vector<Tensor>& tensors) {
    Holds holds(gpu_->group(group), step_.get());
    for (const Tensor& tensor : tensors) holds.Add(tensor);
  }
  void Release(int group) {
    step_->holds().ReleaseWhenCompleted(gpu_->group(group));
  }
  // Tensors held, bytes held, and the peak of bytes held.
  using Held = std::vector<int64_t>;
  Held Counted(int group) {
    const StreamGroupStats stats = gpu_->Stats()[group];
    return {stats.tensors_held, stats.bytes_held, stats.peak_bytes_held};
  }
  bool HasHolds(int group) {
    return step_->holds().HasHolds(gpu_->group(group));
  }

  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<StreamOrder> order_;
  std::unique_ptr<Step> step_;
};

TEST_F(StepHoldsTest, WhatIsKeptIsHeldUntilTheGroupReleasesIt) {
  const Tensor a = Bytes(8);
  EXPECT_FALSE(IsHeld(a));
  Keep(1, {a});
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(HasHolds(1));
  EXPECT_FALSE(HasHolds(2));
  Release(2);
  EXPECT_EQ(streams_[2]->callbacks(), 0);
  EXPECT_TRUE(IsHeld(a));
  Release(1);
  EXPECT_FALSE(HasHolds(1));
  EXPECT_TRUE(IsHeld(a));
  streams_[1]->Complete();
  EXPECT_FALSE(IsHeld(a));
  // Neither the host nor a stream waits.
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StepHoldsTest, TheLeaderWaitsForTheLastUseBeforeItIsReleased) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  int looks = 0;
  streams_[0]->before_waiting = [&] {
    EXPECT_TRUE(IsHeld(a));
    ++looks;
  };
  step_->holds().Release(a.data());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(HasHolds(1));
}

TEST_F(StepHoldsTest, EachGroupThatKeepsItIsWaitedFor) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  Keep(2, {b});
  Keep(3, {a});
  streams_[0]->before_waiting = [&] { EXPECT_TRUE(IsHeld(a)); };
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1",
                                   "3 records", "0 waits for event of 3"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, OtherDataStaysHeld) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a, b});
  step_->holds().Release(a.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_TRUE(IsHeld(b));
  EXPECT_TRUE(HasHolds(1));
}

TEST_F(StepHoldsTest, NobodyWaitsForWhatIsNotKept) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  step_->holds().Release(b.data());
  step_->holds().Release(nullptr);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  step_->holds().Release(a.data());
  record_.Take();
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StepHoldsTest, AWaitThatIsKnownIsNotIssuedAgain) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  Keep(1, {b});
  step_->holds().Release(b.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  // The last use of `a` was before that of `b`.
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, WhatAnotherWaitImpliesIsNotIssued) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  order_->WaitForAll(2, 1);
  order_->WaitForAll(0, 2);
  record_.Take();
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, ALaterUseIsWaitedForToo) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  order_->WaitForAll(0, 1);
  Keep(1, {a});
  record_.Take();
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

// Another thread launches a reader while this thread enqueues the leader's
// wait.
TEST_F(StepHoldsTest, AUseThatComesDuringTheWaitIsWaitedForToo) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  int times = 0;
  streams_[0]->before_waiting = [&] {
    EXPECT_TRUE(IsHeld(a));
    if (++times == 1) Keep(1, {a});
  };
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1",
                                   "1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, WhatIsReleasedDuringTheWaitIsGone) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  streams_[0]->before_waiting = [&] {
    Release(1);
    streams_[1]->Complete();
  };
  step_->holds().Release(a.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(HasHolds(1));
}

TEST_F(StepHoldsTest, WhatIsReleasedCanBeKeptAgain) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  step_->holds().Release(a.data());
  Keep(1, {a});
  EXPECT_TRUE(IsHeld(a));
  record_.Take();
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, AStepWithoutAnOrderDoesNotRelease) {
  step_ = NewStep(nullptr);
  const Tensor a = Bytes(8);
  Keep(1, {a});
  step_->holds().Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(HasHolds(1));
}

// Beyond kMostBytes, memory is released before the step's end.

constexpr int64_t kMost = StepHolds::kMostBytes;

TEST_F(StepHoldsTest, UpToTheMostIsKeptForTheStep) {
  const Tensor a = Bytes(kMost / 2);
  const Tensor b = Bytes(kMost / 2);
  Keep(1, {a});
  Keep(1, {b});
  EXPECT_EQ(streams_[1]->callbacks(), 0);
  step_->holds().Release(a.data());
  step_->holds().Release(b.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(IsHeld(b));
}

TEST_F(StepHoldsTest, BeyondTheMostAllIsHeldUntilTheStreamHasPassedIt) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(kMost);
  const Tensor other = Bytes(8);
  Keep(2, {other});
  Keep(1, {a});
  Keep(1, {b});
  EXPECT_FALSE(HasHolds(1));
  EXPECT_TRUE(HasHolds(2));
  EXPECT_EQ(streams_[1]->callbacks(), 1);
  // Neither Release nor the step's end frees `a` early.
  step_->holds().Release(a.data());
  Release(1);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(IsHeld(b));
  streams_[1]->Complete();
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(IsHeld(b));
  EXPECT_TRUE(IsHeld(other));
}

TEST_F(StepHoldsTest, AfterThatTheStepKeepsAgain) {
  Keep(1, {Bytes(kMost), Bytes(8)});
  EXPECT_EQ(streams_[1]->callbacks(), 1);
  const Tensor a = Bytes(kMost / 2);
  Keep(1, {a});
  EXPECT_EQ(streams_[1]->callbacks(), 1);
  EXPECT_TRUE(HasHolds(1));
  step_->holds().Release(a.data());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepHoldsTest, WhatIsKeptTwiceCountsOnce) {
  const Tensor a = Bytes(kMost / 2 + 1);
  for (int i = 0; i < 3; ++i) Keep(1, {a});
  EXPECT_EQ(streams_[1]->callbacks(), 0);
  EXPECT_TRUE(HasHolds(1));
}

TEST_F(StepHoldsTest, WhatIsReleasedDoesNotCountAnyMore) {
  for (int i = 0; i < 3; ++i) {
    const Tensor a = Bytes(kMost / 2 + 1);
    Keep(1, {a});
    step_->holds().Release(a.data());
    EXPECT_FALSE(IsHeld(a)) << i;
  }
  EXPECT_EQ(streams_[1]->callbacks(), 0);
}

// Statistics of a group.
TEST_F(StepHoldsTest, WhatIsHeldIsCounted) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(24);
  Keep(1, {a, b});
  Keep(1, {a});
  Keep(2, {b});
  EXPECT_EQ(Counted(1), Held({2, 32, 32}));
  EXPECT_EQ(Counted(2), Held({1, 24, 24}));
  EXPECT_EQ(Counted(3), Held({0, 0, 0}));
  step_->holds().Release(b.data());
  EXPECT_EQ(Counted(1), Held({1, 8, 32}));
  EXPECT_EQ(Counted(2), Held({0, 0, 24}));
  Release(1);
  streams_[1]->Complete();
  EXPECT_EQ(Counted(1), Held({0, 0, 32}));
}

TEST_F(StepHoldsTest, WhatTheStreamHasYetToPassIsCounted) {
  Keep(1, {Bytes(kMost), Bytes(8)});
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  Release(1);
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  streams_[1]->Complete();
  EXPECT_EQ(Counted(1), Held({0, 0, kMost + 8}));
}

TEST_F(StepHoldsTest, EachGroupKeepsTheMost) {
  const Tensor a = Bytes(kMost / 2 + 1);
  for (int group = 1; group < kGroups; ++group) Keep(group, {a});
  for (ManualStreamGroup* group : streams_) EXPECT_EQ(group->callbacks(), 0);
  step_->holds().Release(a.data());
  EXPECT_FALSE(IsHeld(a));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
