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

#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
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
  // Completes all work, none of which came too late, and nothing is left.
  void ExpectAllReleased() {
    stream()->Complete();
    EXPECT_EQ(stream()->used_too_late(), 0);
    EXPECT_EQ(memory_.in_use(), 0);
  }
  // Holds the only reference to a new tensor, for work that is yet to be
  // enqueued. Returns the data.
  const void* Add(Holds* holds) {
    const Tensor tensor = Bytes(8);
    holds->Add(tensor);
    return tensor.data();
  }
  // Enqueues that work, and completes all.
  void Finish(Holds* holds, const void* data) {
    EXPECT_TRUE(memory_.IsInUse(data));
    stream()->Use(&memory_, data);
    holds->Enqueued();
    ExpectAllReleased();
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

// The holds released at the step's end are fixed when the callback is enqueued,
// not when the callback runs.
TEST_F(HoldsTest, TheEndOfAStepReleasesNothingThatComesLater) {
  Launch(step_.get(), 8);
  step_->Finish();
  step_->holds().ReleaseWhenCompleted(group());
  Holds holds(group(), step_.get());
  const void* data = Add(&holds);
  stream()->Complete();
  // The later hold is not kept for ever, either.
  Finish(&holds, data);
}

TEST_F(HoldsTest, AStepThatIsDeletedReleasesBehindItsWork) {
  Launch(step_.get(), 8);
  step_.reset();
  EXPECT_EQ(memory_.in_use(), 1);
  ExpectAllReleased();
}

TEST_F(HoldsTest, WithoutAStepTheStreamReleasesBehindTheWork) {
  Launch(nullptr, 8);
  EXPECT_EQ(stream()->callbacks(), 1);
  EXPECT_EQ(memory_.in_use(), 1);
  EXPECT_EQ(gpu_->Stats()[1].tensors_held, 1);
  ExpectAllReleased();
  EXPECT_EQ(gpu_->Stats()[1].tensors_held, 0);
}

TEST_F(HoldsTest, HoldsThatAreMovedAreEnqueuedOnce) {
  Holds first(group(), nullptr);
  const void* data = Add(&first);
  Holds second(std::move(first));
  first.Enqueued();
  EXPECT_EQ(stream()->callbacks(), 0);
  Finish(&second, data);
  second.Enqueued();
  EXPECT_EQ(stream()->callbacks(), 1);
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

// The holds of a step, and what the leader does before it changes memory that
// other groups hold.

using Calls = std::vector<std::string>;

constexpr int kGroups = 4;

Tensor Bytes(int64_t bytes) { return Tensor(DT_UINT8, TensorShape({bytes})); }

// Whether the test's reference to the memory is not the only one: a change
// would have to make a copy.
bool IsHeld(const Tensor& tensor) { return !tensor.RefCountIsOne(); }

// The calls of a leader that waits for what group `i` has enqueued.
Calls WaitFor(int i) {
  return {absl::StrCat(i, " records"),
          absl::StrCat("0 waits for event of ", i)};
}

class StepHoldsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Step> NewStep(StreamOrder* order) {
    return std::make_unique<Step>(gpu_.get(), gpu_->leader(),
                                  /*changes_state=*/true, order);
  }
  // Holds `tensors` for work that is enqueued on the group.
  void Keep(int group, const std::vector<Tensor>& tensors) {
    Holds holds(gpu_->group(group), step_.get());
    for (const Tensor& tensor : tensors) holds.Add(tensor);
  }
  // Ends the step on a group.
  void End(int group) {
    step_->holds().ReleaseWhenCompleted(gpu_->group(group));
  }
  // Releases the memory before the leader changes it. Returns what the streams
  // do for that.
  Calls Release(const Tensor& tensor) {
    record_.Take();
    step_->holds().Release(tensor.data());
    return record_.Take();
  }
  // Tensors held, bytes held, and the peak of bytes held.
  using Held = std::vector<int64_t>;
  Held Counted(int group) {
    const StreamGroupStats stats = gpu_->Stats()[group];
    return {stats.tensors_held, stats.bytes_held, stats.peak_bytes_held};
  }
  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  const std::unique_ptr<GpuGroups> gpu_ =
      NewManualGroups(kGroups, &record_, &streams_);
  StreamOrder order_{gpu_.get(), /*reduce=*/true};
  std::unique_ptr<Step> step_ = NewStep(&order_);
  const Tensor a_ = Bytes(8);
  const Tensor b_ = Bytes(8);
};

TEST_F(StepHoldsTest, WhatIsKeptIsHeldUntilTheGroupReleasesIt) {
  EXPECT_FALSE(IsHeld(a_));
  Keep(1, {a_});
  EXPECT_TRUE(IsHeld(a_));
  End(2);
  EXPECT_EQ(streams_[2]->callbacks(), 0);
  EXPECT_TRUE(IsHeld(a_));
  End(1);
  EXPECT_TRUE(IsHeld(a_));
  streams_[1]->Complete();
  EXPECT_FALSE(IsHeld(a_));
  // Neither the host nor a stream waits.
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StepHoldsTest, TheLeaderWaitsForEachGroupThatKeepsIt) {
  Keep(1, {a_, b_});
  Keep(2, {b_});
  Keep(3, {a_});
  streams_[0]->before_waiting = [&] { EXPECT_TRUE(IsHeld(a_)); };
  EXPECT_EQ(Release(a_), Calls({"1 records", "0 waits for event of 1",
                                "3 records", "0 waits for event of 3"}));
  EXPECT_FALSE(IsHeld(a_));
  EXPECT_TRUE(IsHeld(b_));
  EXPECT_EQ(Release(a_), Calls());
}

TEST_F(StepHoldsTest, NobodyWaitsForWhatIsNotKept) {
  Keep(1, {a_});
  EXPECT_EQ(Release(b_), Calls());
  EXPECT_EQ(Release(Tensor()), Calls());
  EXPECT_TRUE(IsHeld(a_));
}

TEST_F(StepHoldsTest, AWaitThatIsKnownIsNotIssuedAgain) {
  Keep(1, {a_});
  Keep(1, {b_});
  EXPECT_EQ(Release(b_), WaitFor(1));
  // The last use of `a_` was before that of `b_`.
  EXPECT_EQ(Release(a_), Calls());
  EXPECT_FALSE(IsHeld(a_));
  // A later use is waited for.
  Keep(1, {a_});
  EXPECT_TRUE(IsHeld(a_));
  EXPECT_EQ(Release(a_), WaitFor(1));
  EXPECT_FALSE(IsHeld(a_));
}

// Another thread launches a reader while this thread enqueues the leader's
// wait.
TEST_F(StepHoldsTest, AUseThatComesDuringTheWaitIsWaitedForToo) {
  Keep(1, {a_});
  int times = 0;
  streams_[0]->before_waiting = [&] {
    EXPECT_TRUE(IsHeld(a_));
    if (++times == 1) Keep(1, {a_});
  };
  EXPECT_EQ(Release(a_), Calls({"1 records", "0 waits for event of 1",
                                "1 records", "0 waits for event of 1"}));
  EXPECT_FALSE(IsHeld(a_));
}

TEST_F(StepHoldsTest, WhatIsReleasedDuringTheWaitIsGone) {
  Keep(1, {a_});
  streams_[0]->before_waiting = [&] {
    End(1);
    streams_[1]->Complete();
  };
  Release(a_);
  EXPECT_FALSE(IsHeld(a_));
}

TEST_F(StepHoldsTest, AStepWithoutAnOrderDoesNotRelease) {
  step_ = NewStep(nullptr);
  Keep(1, {a_});
  EXPECT_EQ(Release(a_), Calls());
  EXPECT_TRUE(IsHeld(a_));
}

// Beyond kMostBytes, memory is released before the step's end.

TEST_F(StepHoldsTest, EachGroupKeepsTheMostForTheStep) {
  const Tensor half = Bytes(kMost / 2), more = Bytes(kMost / 2 + 1);
  Keep(1, {half});
  Keep(1, {Bytes(kMost / 2)});
  // What is kept twice counts once.
  for (int i = 0; i < 3; ++i) Keep(2, {more});
  Keep(3, {more});
  // What is released does not count any more.
  Release(more);
  EXPECT_FALSE(IsHeld(more));
  Keep(2, {more});
  Release(half);
  EXPECT_FALSE(IsHeld(half));
  for (ManualStreamGroup* group : streams_) EXPECT_EQ(group->callbacks(), 0);
}

TEST_F(StepHoldsTest, BeyondTheMostAllIsHeldUntilTheStreamHasPassedIt) {
  const Tensor large = Bytes(kMost);
  Keep(2, {b_});
  Keep(1, {a_});
  Keep(1, {large});
  EXPECT_EQ(streams_[1]->callbacks(), 1);
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  // Neither Release nor the step's end frees `a_` early.
  EXPECT_EQ(Release(a_), Calls());
  End(1);
  EXPECT_TRUE(IsHeld(a_));
  EXPECT_TRUE(IsHeld(large));
  EXPECT_EQ(Counted(1), Held({2, kMost + 8, kMost + 8}));
  // After that the step keeps again.
  const Tensor half = Bytes(kMost / 2);
  Keep(1, {half});
  EXPECT_EQ(streams_[1]->callbacks(), 1);
  Release(half);
  EXPECT_FALSE(IsHeld(half));
  streams_[1]->Complete();
  EXPECT_FALSE(IsHeld(a_));
  EXPECT_FALSE(IsHeld(large));
  EXPECT_TRUE(IsHeld(b_));
}

// As what an op has put into a list, which later ops of the step read.
TEST_F(StepHoldsTest, BeyondTheMostWhatDoesNotCountIsHeldToTheEnd) {
  {
    Holds of_list(gpu_->group(1), step_.get(), /*counts=*/false);
    of_list.Add(a_);
  }
  Keep(1, {Bytes(kMost + 1)});
  streams_[1]->Complete();
  EXPECT_TRUE(IsHeld(a_));
  End(1);
  EXPECT_TRUE(IsHeld(a_));
  streams_[1]->Complete();
  EXPECT_FALSE(IsHeld(a_));
}

// Statistics of a group.
TEST_F(StepHoldsTest, WhatIsHeldIsCounted) {
  const Tensor b = Bytes(24);
  Keep(1, {a_, b});
  Keep(1, {a_});
  Keep(2, {b});
  EXPECT_EQ(Counted(1), Held({2, 32, 32}));
  EXPECT_EQ(Counted(2), Held({1, 24, 24}));
  EXPECT_EQ(Counted(3), Held({0, 0, 0}));
  Release(b);
  EXPECT_EQ(Counted(1), Held({1, 8, 32}));
  EXPECT_EQ(Counted(2), Held({0, 0, 24}));
  End(1);
  streams_[1]->Complete();
  EXPECT_EQ(Counted(1), Held({0, 0, 32}));
}

}  // namespace
}  // namespace tensorflow::multistream
