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

#include "tensorflow/core/common_runtime/multistream/step/step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/step/holds.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/slow_stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

using Calls = std::vector<std::string>;

constexpr int kGroups = 4;

Tensor Bytes(int64_t bytes) { return Tensor(DT_UINT8, TensorShape({bytes})); }

// Whether somebody else than the test refers to the memory: a change of it
// would make a copy.
bool IsHeld(const Tensor& tensor) { return !tensor.RefCountIsOne(); }

class StepTest : public ::testing::Test {
 protected:
  StepTest() {
    gpu_ = NewSlowGroups(kGroups, &record_, &slow_);
    order_ = std::make_unique<StreamOrder>(gpu_.get(), /*reduce=*/true);
    step_ = NewStep(order_.get());
  }

  std::unique_ptr<Step> NewStep(StreamOrder* order) {
    return std::make_unique<Step>(gpu_.get(), gpu_->leader(),
                                  /*changes_state=*/true, order);
  }
  // For work that is enqueued on the group.
  void Keep(int group, const std::vector<Tensor>& tensors) {
    Holds holds(gpu_->group(group), step_.get());
    for (const Tensor& tensor : tensors) holds.Add(tensor);
  }
  void Release(int group) { step_->ReleaseWhenCompleted(gpu_->group(group)); }
  // Tensors, bytes, and the most bytes at a time.
  using Held = std::vector<int64_t>;
  Held Counted(int group) {
    const StreamGroupStats stats = gpu_->Stats()[group];
    return {stats.tensors_held, stats.bytes_held, stats.peak_bytes_held};
  }
  bool HasHolds(int group) { return step_->HasHolds(gpu_->group(group)); }

  StreamRecord record_;
  std::vector<SlowStreamGroup*> slow_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<StreamOrder> order_;
  std::unique_ptr<Step> step_;
};

TEST_F(StepTest, WhatIsKeptIsHeldUntilTheGroupReleasesIt) {
  const Tensor a = Bytes(8);
  EXPECT_FALSE(IsHeld(a));
  Keep(1, {a});
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(HasHolds(1));
  EXPECT_FALSE(HasHolds(2));
  Release(2);
  EXPECT_EQ(slow_[2]->callbacks(), 0);
  EXPECT_TRUE(IsHeld(a));
  Release(1);
  EXPECT_FALSE(HasHolds(1));
  EXPECT_TRUE(IsHeld(a));
  slow_[1]->Complete();
  EXPECT_FALSE(IsHeld(a));
  // The host neither waits for it nor tells a stream to.
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StepTest, TheLeaderWaitsForTheLastUseBeforeItIsReleased) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  int looks = 0;
  slow_[0]->before_waiting = [&] {
    EXPECT_TRUE(IsHeld(a));
    ++looks;
  };
  step_->Release(a.data());
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(HasHolds(1));
}

TEST_F(StepTest, EachGroupThatKeepsItIsWaitedFor) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  Keep(2, {b});
  Keep(3, {a});
  slow_[0]->before_waiting = [&] { EXPECT_TRUE(IsHeld(a)); };
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1",
                                   "3 records", "0 waits for event of 3"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, OtherDataStaysHeld) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a, b});
  step_->Release(a.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_TRUE(IsHeld(b));
  EXPECT_TRUE(HasHolds(1));
}

TEST_F(StepTest, NobodyWaitsForWhatIsNotKept) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  step_->Release(b.data());
  step_->Release(nullptr);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  step_->Release(a.data());
  record_.Take();
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StepTest, AWaitThatIsKnownIsNotIssuedAgain) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(8);
  Keep(1, {a});
  Keep(1, {b});
  step_->Release(b.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  // Its last use was before that of b.
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, WhatAnotherWaitImpliesIsNotIssued) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  order_->WaitForAll(2, 1);
  order_->WaitForAll(0, 2);
  record_.Take();
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, ALaterUseIsWaitedForToo) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  order_->WaitForAll(0, 1);
  Keep(1, {a});
  record_.Take();
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

// Another thread launches a reader while this one tells the leader to wait.
TEST_F(StepTest, AUseThatComesDuringTheWaitIsWaitedForToo) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  int times = 0;
  slow_[0]->before_waiting = [&] {
    EXPECT_TRUE(IsHeld(a));
    if (++times == 1) Keep(1, {a});
  };
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1",
                                   "1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, WhatIsReleasedDuringTheWaitIsGone) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  slow_[0]->before_waiting = [&] {
    Release(1);
    slow_[1]->Complete();
  };
  step_->Release(a.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(HasHolds(1));
}

TEST_F(StepTest, WhatIsReleasedCanBeKeptAgain) {
  const Tensor a = Bytes(8);
  Keep(1, {a});
  step_->Release(a.data());
  Keep(1, {a});
  EXPECT_TRUE(IsHeld(a));
  record_.Take();
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls({"1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, AStepWithoutAnOrderDoesNotRelease) {
  step_ = NewStep(nullptr);
  const Tensor a = Bytes(8);
  Keep(1, {a});
  step_->Release(a.data());
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(HasHolds(1));
}

// Much memory goes back to its group before the step ends.

constexpr int64_t kMost = Step::kMostBytesKept;

TEST_F(StepTest, UpToTheMostIsKeptForTheStep) {
  const Tensor a = Bytes(kMost / 2);
  const Tensor b = Bytes(kMost / 2);
  Keep(1, {a});
  Keep(1, {b});
  EXPECT_EQ(slow_[1]->callbacks(), 0);
  step_->Release(a.data());
  step_->Release(b.data());
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(IsHeld(b));
}

TEST_F(StepTest, BeyondTheMostAllIsHeldUntilTheStreamHasPassedIt) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(kMost);
  const Tensor other = Bytes(8);
  Keep(2, {other});
  Keep(1, {a});
  Keep(1, {b});
  EXPECT_FALSE(HasHolds(1));
  EXPECT_TRUE(HasHolds(2));
  EXPECT_EQ(slow_[1]->callbacks(), 1);
  // Nor does the step's end give it back.
  step_->Release(a.data());
  Release(1);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(IsHeld(a));
  EXPECT_TRUE(IsHeld(b));
  slow_[1]->Complete();
  EXPECT_FALSE(IsHeld(a));
  EXPECT_FALSE(IsHeld(b));
  EXPECT_TRUE(IsHeld(other));
}

TEST_F(StepTest, AfterThatTheStepKeepsAgain) {
  Keep(1, {Bytes(kMost), Bytes(8)});
  EXPECT_EQ(slow_[1]->callbacks(), 1);
  const Tensor a = Bytes(kMost / 2);
  Keep(1, {a});
  EXPECT_EQ(slow_[1]->callbacks(), 1);
  EXPECT_TRUE(HasHolds(1));
  step_->Release(a.data());
  EXPECT_FALSE(IsHeld(a));
}

TEST_F(StepTest, WhatIsKeptTwiceCountsOnce) {
  const Tensor a = Bytes(kMost / 2 + 1);
  for (int i = 0; i < 3; ++i) Keep(1, {a});
  EXPECT_EQ(slow_[1]->callbacks(), 0);
  EXPECT_TRUE(HasHolds(1));
}

TEST_F(StepTest, WhatIsReleasedDoesNotCountAnyMore) {
  for (int i = 0; i < 3; ++i) {
    const Tensor a = Bytes(kMost / 2 + 1);
    Keep(1, {a});
    step_->Release(a.data());
    EXPECT_FALSE(IsHeld(a)) << i;
  }
  EXPECT_EQ(slow_[1]->callbacks(), 0);
}

// What the statistics say of a group.
TEST_F(StepTest, WhatIsHeldIsCounted) {
  const Tensor a = Bytes(8);
  const Tensor b = Bytes(24);
  Keep(1, {a, b});
  Keep(1, {a});
  Keep(2, {b});
  EXPECT_EQ(Counted(1), Held({2, 32, 32}));
  EXPECT_EQ(Counted(2), Held({1, 24, 24}));
  EXPECT_EQ(Counted(3), Held({0, 0, 0}));
  step_->Release(b.data());
  EXPECT_EQ(Counted(1), Held({1, 8, 32}));
  EXPECT_EQ(Counted(2), Held({0, 0, 24}));
  Release(1);
  slow_[1]->Complete();
  EXPECT_EQ(Counted(1), Held({0, 0, 32}));
}

TEST_F(StepTest, WhatTheStreamHasYetToPassIsCounted) {
  Keep(1, {Bytes(kMost), Bytes(8)});
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  Release(1);
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  slow_[1]->Complete();
  EXPECT_EQ(Counted(1), Held({0, 0, kMost + 8}));
}

TEST_F(StepTest, EachGroupKeepsTheMost) {
  const Tensor a = Bytes(kMost / 2 + 1);
  for (int group = 1; group < kGroups; ++group) Keep(group, {a});
  for (SlowStreamGroup* group : slow_) EXPECT_EQ(group->callbacks(), 0);
  step_->Release(a.data());
  EXPECT_FALSE(IsHeld(a));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
