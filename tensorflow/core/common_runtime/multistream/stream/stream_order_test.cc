// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

using Calls = std::vector<std::string>;
using RecordedEvent = std::unique_ptr<StreamOrder::RecordedEvent>;

constexpr int kGroups = 4;

// Counts its events, and runs the test's code inside calls.
class WatchedGroup : public FakeStreamGroup {
 public:
  using FakeStreamGroup::FakeStreamGroup;
  std::unique_ptr<StreamEvent> NewEvent() override {
    ++events_made;
    return FakeStreamGroup::NewEvent();
  }
  void Record(StreamEvent* event) override {
    FakeStreamGroup::Record(event);
    if (when_recorded) when_recorded();
  }
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override {
    waited_for = event;
    if (before_waiting) before_waiting();
    FakeStreamGroup::WaitForEvent(other, event);
  }
  int events_made = 0;
  StreamEvent* waited_for = nullptr;  // the last one
  std::function<void()> when_recorded;
  std::function<void()> before_waiting;
};

class StreamOrderTest : public ::testing::Test {
 protected:
  StreamOrderTest() {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < kGroups; ++i) {
      auto group = std::make_unique<WatchedGroup>(0, i, &record_);
      watched_.push_back(group.get());
      groups.push_back(std::move(group));
    }
    gpu_ = std::make_unique<GpuGroups>(std::move(groups));
    Reduce(true);
  }

  void Reduce(bool reduce) {
    order_ = std::make_unique<StreamOrder>(gpu_.get(), reduce);
  }
  RecordedEvent LaunchAndRecord(int group) {
    order_->Launched(group);
    return order_->Record(group);
  }
  void ExpectCounts(int64_t recorded, int64_t waited, int64_t known) {
    const StreamOrder::Counts counts = order_->counts();
    EXPECT_EQ(counts.recorded, recorded);
    EXPECT_EQ(counts.waited, waited);
    EXPECT_EQ(counts.known, known);
  }

  StreamRecord record_;
  std::vector<WatchedGroup*> watched_;
  std::unique_ptr<GpuGroups> gpu_;
  std::unique_ptr<StreamOrder> order_;
};

TEST_F(StreamOrderTest, EachGroupCountsItsOwnLaunchesFromOne) {
  EXPECT_EQ(order_->Launched(0), 1);
  EXPECT_EQ(order_->Launched(0), 2);
  EXPECT_EQ(order_->Launched(2), 1);
  EXPECT_EQ(order_->Launched(0), 3);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamOrderTest, AnEventIsAtThePositionOfItsGroup) {
  const RecordedEvent none = order_->Record(1);
  EXPECT_EQ(none->position, 0);
  order_->Launched(1);
  order_->Launched(1);
  order_->Launched(2);
  const RecordedEvent recorded = order_->Record(1);
  EXPECT_EQ(recorded->group, 1);
  EXPECT_EQ(recorded->position, 2);
  EXPECT_EQ(record_.Take(), Calls({"1 records", "1 records"}));
  EXPECT_NE(recorded->event, nullptr);
  EXPECT_NE(recorded->event, none->event);
}

TEST_F(StreamOrderTest, NothingIsKnownAtFirstButOnesOwn) {
  order_->Launched(1);
  for (int group = 0; group < kGroups; ++group) {
    for (int other = 0; other < kGroups; ++other) {
      EXPECT_TRUE(order_->Knows(group, other, 0));
      EXPECT_EQ(order_->Knows(group, other, 1), group == other);
    }
  }
}

TEST_F(StreamOrderTest, AGroupWaitsForTheRecordedEvent) {
  const RecordedEvent first = LaunchAndRecord(1);
  const RecordedEvent second = LaunchAndRecord(1);
  record_.Take();
  order_->WaitFor(2, *first);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for event of 1"}));
  EXPECT_EQ(watched_[2]->waited_for, first->event.get());
  EXPECT_TRUE(order_->Knows(2, 1, 1));
  EXPECT_FALSE(order_->Knows(2, 1, 2));
  order_->WaitFor(2, *second);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for event of 1"}));
  EXPECT_EQ(watched_[2]->waited_for, second->event.get());
  EXPECT_TRUE(order_->Knows(2, 1, 2));
  ExpectCounts(2, 2, 0);
}

TEST_F(StreamOrderTest, OnlyTheGroupThatWaitsKnows) {
  const RecordedEvent recorded = LaunchAndRecord(1);
  order_->WaitFor(2, *recorded);
  EXPECT_FALSE(order_->Knows(0, 1, 1));
  EXPECT_FALSE(order_->Knows(3, 1, 1));
  EXPECT_FALSE(order_->Knows(1, 2, 1));
  EXPECT_FALSE(order_->Knows(2, 0, 1));
}

TEST_F(StreamOrderTest, AWaitForWhatIsKnownIsLeftOut) {
  const RecordedEvent first = LaunchAndRecord(1);
  const RecordedEvent second = LaunchAndRecord(1);
  order_->WaitFor(2, *second);
  record_.Take();
  order_->WaitFor(2, *second);
  order_->WaitFor(2, *first);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_TRUE(order_->Knows(2, 1, 2));
  ExpectCounts(2, 1, 2);
  order_->WaitFor(3, *first);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for event of 1"}));
}

TEST_F(StreamOrderTest, ALaterLaunchIsNotKnown) {
  order_->WaitFor(2, *LaunchAndRecord(1));
  record_.Take();
  order_->WaitFor(2, *LaunchAndRecord(1));
  EXPECT_EQ(record_.Take(), Calls({"1 records", "2 waits for event of 1"}));
}

TEST_F(StreamOrderTest, AWaitForAnEarlierEventTakesNothingBack) {
  Reduce(false);
  const RecordedEvent first = LaunchAndRecord(1);
  const RecordedEvent second = LaunchAndRecord(1);
  order_->WaitFor(2, *second);
  order_->WaitFor(2, *first);
  EXPECT_TRUE(order_->Knows(2, 1, 2));
}

TEST_F(StreamOrderTest, AGroupDoesNotWaitForItself) {
  const RecordedEvent recorded = LaunchAndRecord(1);
  record_.Take();
  order_->WaitFor(1, *recorded);
  order_->WaitForTail(1, 1, order_->Launched(1));
  order_->WaitForAll(1, 1);
  EXPECT_EQ(record_.Take(), Calls());
  // This does not count as a wait that Knows saved.
  ExpectCounts(1, 0, 0);
}

TEST_F(StreamOrderTest, AGroupKnowsWhatTheEventsGroupKnew) {
  order_->WaitFor(1, *LaunchAndRecord(0));
  order_->WaitFor(2, *LaunchAndRecord(1));
  order_->WaitFor(3, *LaunchAndRecord(2));
  record_.Take();
  EXPECT_TRUE(order_->Knows(3, 0, 1));
  EXPECT_TRUE(order_->Knows(3, 1, 1));
  EXPECT_FALSE(order_->Knows(3, 0, 2));
  order_->WaitForTail(3, 0, 1);
  order_->WaitForTail(3, 1, 1);
  EXPECT_EQ(record_.Take(), Calls());
  ExpectCounts(3, 3, 2);
}

TEST_F(StreamOrderTest, AGroupDoesNotKnowWhatTheEventsGroupLearntLater) {
  const RecordedEvent of_0 = LaunchAndRecord(0);
  const RecordedEvent of_1 = LaunchAndRecord(1);
  order_->WaitFor(1, *of_0);
  order_->WaitFor(2, *of_1);
  EXPECT_TRUE(order_->Knows(2, 1, 1));
  EXPECT_FALSE(order_->Knows(2, 0, 1));
  record_.Take();
  order_->WaitFor(2, *of_0);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for event of 0"}));
}

TEST_F(StreamOrderTest, WithoutReductionOnlyWaitsForOneselfAreLeftOut) {
  Reduce(false);
  const RecordedEvent of_0 = LaunchAndRecord(0);
  order_->WaitFor(1, *of_0);
  const RecordedEvent of_1 = LaunchAndRecord(1);
  order_->WaitFor(2, *of_1);
  record_.Take();
  EXPECT_TRUE(order_->Knows(2, 0, 1));
  order_->WaitFor(2, *of_1);
  order_->WaitFor(2, *of_0);
  order_->WaitForTail(2, 0, 1);
  order_->WaitForTail(2, 3, 0);
  order_->WaitFor(1, *of_1);
  order_->WaitForTail(1, 1, 5);
  EXPECT_EQ(
      record_.Take(),
      Calls({"2 waits for event of 1", "2 waits for event of 0", "0 records",
             "2 waits for event of 0", "3 records", "2 waits for event of 3"}));
  ExpectCounts(4, 6, 0);
}

TEST_F(StreamOrderTest, AWaitForATailCoversAllThatWasLaunched) {
  const int64_t first = order_->Launched(1);
  const int64_t last = order_->Launched(1);
  order_->WaitForTail(2, 1, first);
  EXPECT_EQ(record_.Take(), Calls({"1 records", "2 waits for event of 1"}));
  EXPECT_TRUE(order_->Knows(2, 1, last));
  EXPECT_FALSE(order_->Knows(2, 1, last + 1));
  ExpectCounts(1, 1, 0);
}

TEST_F(StreamOrderTest, AWaitForATailIsLeftOutIfThePositionIsKnown) {
  const int64_t first = order_->Launched(1);
  order_->WaitFor(2, *order_->Record(1));
  const int64_t second = order_->Launched(1);
  record_.Take();
  order_->WaitForTail(2, 1, first);
  EXPECT_EQ(record_.Take(), Calls());
  ExpectCounts(1, 1, 1);
  order_->WaitForTail(2, 1, second);
  EXPECT_EQ(record_.Take(), Calls({"1 records", "2 waits for event of 1"}));
  order_->WaitForTail(2, 1, second);
  EXPECT_EQ(record_.Take(), Calls());
  ExpectCounts(2, 2, 2);
}

TEST_F(StreamOrderTest, AWaitForATailTellsWhatItsGroupKnew) {
  order_->WaitFor(1, *LaunchAndRecord(0));
  order_->WaitForTail(2, 1, order_->Launched(1));
  EXPECT_TRUE(order_->Knows(2, 0, 1));
}

TEST_F(StreamOrderTest, AWaitForAllIsAlwaysIssued) {
  order_->WaitFor(2, *LaunchAndRecord(1));
  record_.Take();
  const Calls wait = {"1 records", "2 waits for event of 1"};
  order_->WaitForAll(2, 1);
  EXPECT_EQ(record_.Take(), wait);
  order_->WaitForAll(2, 1);
  EXPECT_EQ(record_.Take(), wait);
  // WaitForAll also covers work that was not counted by Launched.
  order_->WaitForAll(2, 3);
  EXPECT_EQ(record_.Take(), Calls({"3 records", "2 waits for event of 3"}));
  ExpectCounts(4, 4, 0);
}

TEST_F(StreamOrderTest, AWaitForAllCoversAllThatWasLaunched) {
  const int64_t last = order_->Launched(1);
  order_->WaitForAll(2, 1);
  record_.Take();
  order_->WaitForTail(2, 1, last);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamOrderTest, AnEventThatIsNotNeededAnyMoreIsRecordedAnew) {
  RecordedEvent first = LaunchAndRecord(1);
  RecordedEvent second = LaunchAndRecord(1);
  EXPECT_EQ(watched_[1]->events_made, 2);
  order_->Recycle(std::move(first));
  order_->Recycle(std::move(second));
  order_->Recycle(nullptr);
  first = order_->Record(1);
  second = order_->Record(1);
  EXPECT_EQ(watched_[1]->events_made, 2);
  const RecordedEvent third = order_->Record(1);
  EXPECT_EQ(watched_[1]->events_made, 3);
  ExpectCounts(5, 0, 0);
}

TEST_F(StreamOrderTest, AnEventIsRecordedAnewForItsOwnGroup) {
  order_->Recycle(LaunchAndRecord(1));
  const RecordedEvent other = order_->Record(2);
  EXPECT_EQ(other->group, 2);
  EXPECT_EQ(watched_[2]->events_made, 1);
  EXPECT_EQ(order_->Record(1)->group, 1);
  EXPECT_EQ(watched_[1]->events_made, 1);
}

TEST_F(StreamOrderTest, AnEventThatIsRecordedAnewForgetsWhatItWas) {
  order_->Recycle(LaunchAndRecord(1));
  order_->WaitFor(1, *LaunchAndRecord(0));
  const RecordedEvent recorded = LaunchAndRecord(1);
  EXPECT_EQ(watched_[1]->events_made, 1);
  EXPECT_EQ(recorded->position, 2);
  order_->WaitFor(2, *recorded);
  EXPECT_TRUE(order_->Knows(2, 1, 2));
  EXPECT_TRUE(order_->Knows(2, 0, 1));
}

TEST_F(StreamOrderTest, WaitsForTailsShareAnEvent) {
  for (int i = 0; i < 5; ++i) {
    order_->WaitForTail(2, 1, order_->Launched(1));
    order_->WaitForAll(3, 1);
  }
  EXPECT_EQ(watched_[1]->events_made, 1);
  ExpectCounts(10, 10, 0);
}

// Other threads act in the middle of a call.

TEST_F(StreamOrderTest, WhatComesWhileAnEventIsRecordedIsNotOfTheEvent) {
  const RecordedEvent of_0 = LaunchAndRecord(0);
  order_->Launched(1);
  // Runs when the event is recorded, but Record has not returned.
  watched_[1]->when_recorded = [&] {
    order_->Launched(1);
    order_->WaitFor(1, *of_0);
  };
  const RecordedEvent recorded = order_->Record(1);
  EXPECT_EQ(recorded->position, 1);
  order_->WaitFor(2, *recorded);
  EXPECT_FALSE(order_->Knows(2, 1, 2));
  EXPECT_FALSE(order_->Knows(2, 0, 1));
}

TEST_F(StreamOrderTest, NothingIsKnownBeforeTheStreamWaits) {
  order_->WaitFor(1, *LaunchAndRecord(0));
  const RecordedEvent recorded = LaunchAndRecord(1);
  int looks = 0;
  watched_[2]->before_waiting = [&] {
    EXPECT_FALSE(order_->Knows(2, 0, 1));
    EXPECT_FALSE(order_->Knows(2, 1, 1));
    ++looks;
  };
  order_->WaitFor(2, *recorded);
  Reduce(true);
  order_->WaitForTail(2, 1, order_->Launched(1));
  EXPECT_EQ(looks, 2);
}

TEST_F(StreamOrderTest, AnEventIsNotRecordedAnewBeforeTheStreamWaits) {
  RecordedEvent meanwhile;
  watched_[2]->before_waiting = [&] { meanwhile = order_->Record(1); };
  order_->WaitForTail(2, 1, order_->Launched(1));
  ASSERT_NE(meanwhile, nullptr);
  EXPECT_NE(meanwhile->event.get(), watched_[2]->waited_for);
  EXPECT_EQ(watched_[1]->events_made, 2);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
