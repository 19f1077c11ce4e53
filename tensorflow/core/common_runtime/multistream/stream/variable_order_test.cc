// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/watched_thread.h"

namespace tensorflow {
namespace multistream {
namespace {

using Calls = std::vector<std::string>;

// Two variables.
constexpr GpuGroups::StateKey kState[] = {1};
constexpr GpuGroups::StateKey kOtherState[] = {2};

class VariableOrderTest : public ::testing::Test {
 protected:
  void Read(int i) {
    groups_->BeginRead(groups_->group(i), kState);
    groups_->EndRead(groups_->group(i), kState);
  }
  void Write() {
    groups_->BeginWrite(kState);
    groups_->EndWrite(kState);
  }
  void OrderAfterLeader(int i) { groups_->OrderAfterLeader(groups_->group(i)); }

  // Blocks until `threads` threads wait to enter, or `inside` is set by one
  // that has entered.
  template <class Inside>
  void WaitUntilOutside(int threads, const std::atomic<Inside>& inside) {
    while (groups_->threads_that_wait_for_state() < threads && !inside) {
      std::this_thread::yield();
    }
  }

  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

TEST_F(VariableOrderTest, NobodyWaitsForALeaderThatDidNothing) {
  for (int i = 0; i < 4; ++i) OrderAfterLeader(i);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(VariableOrderTest, AGroupWaitsOnceForWorkOfTheLeader) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "2 waits for own event of 0"}));
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(), Calls());
  // Another group uses the same event.
  OrderAfterLeader(3);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for own event of 0"}));
  OrderAfterLeader(3);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(VariableOrderTest, AGroupWaitsAgainForLaterWork) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(1);
  groups_->NoteLeaderWork();
  record_.Take();
  OrderAfterLeader(1);
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
  // Group 2 missed the first event and needs only the last.
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for own event of 0"}));
}

TEST_F(VariableOrderTest, TheLeaderNeverWaitsForItself) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(0);
  EXPECT_EQ(record_.Take(), Calls());
  // Other groups still wait for the work.
  OrderAfterLeader(1);
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
}

TEST_F(VariableOrderTest, AReadWaitsForTheLastWrite) {
  Write();
  EXPECT_EQ(record_.Take(), Calls());
  groups_->BeginRead(groups_->group(1), kState);
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
  groups_->EndRead(groups_->group(1), kState);
  Read(1);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(VariableOrderTest, AWriteWaitsForExactlyTheGroupsThatHaveRead) {
  Read(1);
  Read(3);
  Read(3);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1", "0 waits for 3"}));
  groups_->EndWrite(kState);
  // The leader's stream has already waited for these reads.
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndWrite(kState);
  Read(2);
  record_.Take();
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 2"}));
  groups_->EndWrite(kState);
}

TEST_F(VariableOrderTest, ReadsOfSeveralGroupsRunTogether) {
  groups_->BeginRead(groups_->group(1), kState);
  std::thread other([this] { Read(2); });
  other.join();  // hangs if the first read kept the second out
  groups_->EndRead(groups_->group(1), kState);
}

TEST_F(VariableOrderTest, AReadStaysOutWhileAWriteIsLaunched) {
  groups_->BeginWrite(kState);
  std::atomic<bool> read{false};
  std::thread reader([&] {
    groups_->BeginRead(groups_->group(1), kState);
    read = true;
    groups_->EndRead(groups_->group(1), kState);
  });
  WaitUntilOutside(1, read);
  EXPECT_FALSE(read);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndWrite(kState);
  reader.join();
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
}

TEST_F(VariableOrderTest, AWriteStaysOutWhileAReadIsLaunched) {
  groups_->BeginRead(groups_->group(1), kState);
  std::atomic<bool> written{false};
  std::thread writer([&] {
    groups_->BeginWrite(kState);
    written = true;
    groups_->EndWrite(kState);
  });
  WaitUntilOutside(1, written);
  EXPECT_FALSE(written);
  groups_->EndRead(groups_->group(1), kState);
  writer.join();
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1"}));
}

TEST_F(VariableOrderTest, AMoveKeepsOutWhoReadsAndWhoWrites) {
  Read(1);
  groups_->BeginMove(kState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1"}));
  std::atomic<int> inside{0};
  std::thread reader([&] {
    groups_->BeginRead(groups_->group(1), kState);
    ++inside;
    groups_->EndRead(groups_->group(1), kState);
  });
  std::thread writer([&] {
    groups_->BeginWrite(kState);
    ++inside;
    groups_->EndWrite(kState);
  });
  groups_->BeginWrite(kOtherState);
  groups_->EndWrite(kOtherState);
  WaitUntilOutside(2, inside);
  EXPECT_EQ(inside, 0);
  groups_->EndMove(kState);
  reader.join();
  writer.join();
}

TEST_F(VariableOrderTest, TheLeadersReadsKeepWritersOutAndNeedNoWait) {
  groups_->BeginRead(groups_->leader(), kState);
  std::atomic<bool> written{false};
  std::thread writer([&] {
    groups_->BeginWrite(kState);
    written = true;
    groups_->EndWrite(kState);
  });
  WaitUntilOutside(1, written);
  EXPECT_FALSE(written);
  groups_->EndRead(groups_->leader(), kState);
  writer.join();
  EXPECT_EQ(record_.Take(), Calls());
}

// An op that uses one variable may wait for memory that an op with another
// variable frees.
TEST_F(VariableOrderTest, AReadGoesOnWhileAnotherVariableIsChanged) {
  Write();
  groups_->BeginWrite(kState);
  std::thread reader([&] {  // hangs if the write keeps it out
    groups_->BeginRead(groups_->group(1), kOtherState);
    groups_->EndRead(groups_->group(1), kOtherState);
  });
  reader.join();
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
  groups_->EndWrite(kState);
  // The end of the change is work enqueued since the event.
  Read(1);
  EXPECT_EQ(record_.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0"}));
}

TEST_F(VariableOrderTest, AWriteGoesOnWhileAnotherVariableIsRead) {
  groups_->BeginRead(groups_->group(1), kOtherState);
  std::thread writer([&] { Write(); });
  writer.join();
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndRead(groups_->group(1), kOtherState);
  groups_->BeginWrite(kOtherState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1"}));
  groups_->EndWrite(kOtherState);
}

// Runs the test's code when the leader's stream records its own event.
class WatchedLeader : public FakeStreamGroup {
 public:
  using FakeStreamGroup::FakeStreamGroup;
  void RecordOwnEvent() override {
    FakeStreamGroup::RecordOwnEvent();
    if (when_marking) when_marking();
  }
  std::function<void()> when_marking;
};

TEST(VariableOrderThreadsTest, AGroupWaitsAlsoWhileAnotherRecordsTheEvent) {
  StreamRecord record;
  std::vector<std::unique_ptr<StreamGroup>> list;
  list.push_back(std::make_unique<WatchedLeader>(0, 0, &record));
  auto* leader = static_cast<WatchedLeader*>(list[0].get());
  for (int i = 1; i < 3; ++i) {
    list.push_back(std::make_unique<FakeStreamGroup>(0, i, &record));
  }
  GpuGroups groups(std::move(list));
  std::optional<WatchedThread> other;
  leader->when_marking = [&] {
    other.emplace([&] { groups.OrderAfterLeader(groups.group(2)); });
    EXPECT_FALSE(other->EndsBeforeItSleeps());
  };
  groups.NoteLeaderWork();
  groups.OrderAfterLeader(groups.group(1));
  other.reset();
  EXPECT_EQ(record.Take(),
            Calls({"0 records its own event", "1 waits for own event of 0",
                   "2 waits for own event of 0"}));
}

// Streams as counters: the leader's event stands for the writes before it. A
// group that waits for the event is ordered after these writes.
struct CountedWrites {
  std::atomic<int> written{0};
  std::atomic<int> recorded{0};
};

class CountingGroup : public StreamGroup {
 public:
  CountingGroup(int index, CountedWrites* writes)
      : StreamGroup(0, index), writes_(writes) {}
  void WaitFor(StreamGroup*) override {}
  void RecordOwnEvent() override {
    writes_->recorded = writes_->written.load();
  }
  void WaitForOwnEventOf(StreamGroup*) override {
    seen_ = writes_->recorded.load();
  }
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<StreamEvent>();
  }
  void Record(StreamEvent*) override {}
  void WaitForEvent(StreamGroup*, StreamEvent*) override {}
  void ThenExecute(std::function<void()> f) override { f(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  int seen() const { return seen_; }

 private:
  CountedWrites* const writes_;
  std::atomic<int> seen_{0};
};

TEST(VariableOrderThreadsTest, EveryReadIsBehindEveryEarlierWrite) {
  CountedWrites writes;
  std::vector<std::unique_ptr<StreamGroup>> list;
  for (int i = 0; i < 4; ++i) {
    list.push_back(std::make_unique<CountingGroup>(i, &writes));
  }
  GpuGroups groups(std::move(list));
  std::atomic<bool> stop{false};
  std::atomic<int> too_early{0}, together{0}, reading{0}, writing{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      auto* group = static_cast<CountingGroup*>(groups.group(1 + t));
      while (!stop) {
        groups.BeginRead(group, kState);
        ++reading;
        if (writing > 0) ++together;
        if (group->seen() < writes.written) ++too_early;
        --reading;
        groups.EndRead(group, kState);
      }
    });
  }
  for (int i = 0; i < 500; ++i) {
    groups.BeginWrite(kState);
    ++writing;
    if (reading > 0) ++together;
    ++writes.written;
    --writing;
    groups.EndWrite(kState);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(too_early, 0);
  EXPECT_EQ(together, 0);
}

TEST_F(VariableOrderTest, AVersionIsOfTheVariablesAskedForAndNoneMeanwhile) {
  const GpuGroups::StateKey both[] = {1, 2};
  const auto version = groups_->StateVersion(kState);
  const auto of_both = groups_->StateVersion(both);
  ASSERT_TRUE(version.has_value());
  Read(1);
  EXPECT_EQ(groups_->StateVersion(kState), version);
  groups_->BeginWrite(kState);
  EXPECT_EQ(groups_->StateVersion(kState), std::nullopt);
  EXPECT_EQ(groups_->StateVersion(both), std::nullopt);
  EXPECT_TRUE(groups_->StateVersion(kOtherState).has_value());
  groups_->EndWrite(kState);
  EXPECT_NE(groups_->StateVersion(kState), version);
  EXPECT_NE(groups_->StateVersion(both), of_both);
  EXPECT_EQ(groups_->StateVersion({}), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
