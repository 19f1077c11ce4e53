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

#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

using Calls = std::vector<std::string>;

// A variable, and another one.
constexpr GpuGroups::StateKey kState[] = {1};
constexpr GpuGroups::StateKey kOtherState[] = {2};

class GpuGroupsTest : public ::testing::Test {
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

  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

TEST_F(GpuGroupsTest, GroupZeroIsTheLeader) {
  EXPECT_EQ(groups_->size(), 4);
  EXPECT_EQ(groups_->leader(), groups_->group(0));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(groups_->group(i)->index(), i);
    EXPECT_EQ(groups_->group(i)->is_leader(), i == 0);
  }
}

TEST_F(GpuGroupsTest, IdleGroupsTakeTurns) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      StreamGroup* group = groups_->StartStep(groups_->size());
      EXPECT_EQ(group->index(), i);
      groups_->EndStep(group, true);
    }
  }
}

TEST_F(GpuGroupsTest, EquallyBusyGroupsTakeTurns) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(groups_->StartStep(groups_->size())->index(), i);
  }
}

TEST_F(GpuGroupsTest, AStepGoesToTheLeastLoadedGroup) {
  for (int i = 0; i < 8; ++i) groups_->StartStep(groups_->size());
  groups_->EndStep(groups_->group(2), true);
  EXPECT_EQ(groups_->StartStep(groups_->size())->index(), 2);
  groups_->EndStep(groups_->group(1), true);
  groups_->EndStep(groups_->group(1), true);
  EXPECT_EQ(groups_->StartStep(groups_->size())->index(), 1);
  EXPECT_EQ(groups_->StartStep(groups_->size())->index(), 1);
}

TEST_F(GpuGroupsTest, StepsThatMustRunOnAGroupCountAsItsLoad) {
  groups_->StartStepOn(groups_->leader());
  for (int i = 1; i < 4; ++i)
    EXPECT_EQ(groups_->StartStep(groups_->size())->index(), i);
  groups_->StartStepOn(groups_->leader());
  for (int i = 1; i < 4; ++i)
    EXPECT_EQ(groups_->StartStep(groups_->size())->index(), i);
}

TEST_F(GpuGroupsTest, StatsCountStartedRunningAndFailedSteps) {
  for (int i = 0; i < 6; ++i)
    groups_->StartStep(groups_->size());  // 0 1 2 3 0 1
  groups_->EndStep(groups_->group(0), true);
  groups_->EndStep(groups_->group(1), false);
  groups_->EndStep(groups_->group(1), false);
  const std::vector<StreamGroupStats> stats = groups_->Stats();
  ASSERT_EQ(stats.size(), 4);
  const int started[] = {2, 2, 1, 1}, running[] = {1, 0, 1, 1},
            failed[] = {0, 2, 0, 0};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(stats[i].gpu, 2);
    EXPECT_EQ(stats[i].group, i);
    EXPECT_EQ(stats[i].steps_started, started[i]) << i;
    EXPECT_EQ(stats[i].steps_running, running[i]) << i;
    EXPECT_EQ(stats[i].steps_failed, failed[i]) << i;
    EXPECT_EQ(stats[i].bytes_in_use, 0) << "no allocator yet";
  }
}

TEST_F(GpuGroupsTest, StatsAreThoseOfTheGroupsAllocator) {
  class CountingAllocator : public Allocator {
   public:
    std::string Name() override { return "counting"; }
    void* AllocateRaw(size_t, size_t) override { return nullptr; }
    void DeallocateRaw(void*) override {}
    std::optional<AllocatorStats> GetStats() override {
      AllocatorStats stats;
      stats.bytes_in_use = 10;
      stats.peak_bytes_in_use = 20;
      stats.bytes_limit = 30;
      return stats;
    }
  } allocator;
  groups_->group(3)->set_allocator(&allocator);
  const std::vector<StreamGroupStats> stats = groups_->Stats();
  EXPECT_EQ(stats[3].bytes_in_use, 10);
  EXPECT_EQ(stats[3].peak_bytes_in_use, 20);
  EXPECT_EQ(stats[3].bytes_limit, 30);
  EXPECT_EQ(stats[2].bytes_limit, 0);
}

TEST_F(GpuGroupsTest, ManyThreadsLoadTheGroupsEvenly) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) groups_->StartStep(groups_->size());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const StreamGroupStats& stats : groups_->Stats()) {
    EXPECT_EQ(stats.steps_running, 200);
  }
}

TEST_F(GpuGroupsTest, NobodyWaitsForALeaderThatDidNothing) {
  for (int i = 0; i < 4; ++i) OrderAfterLeader(i);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(GpuGroupsTest, AGroupWaitsOnceForWorkOfTheLeader) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "2 waits for mark of 0"}));
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(), Calls());
  // Another group uses the same mark.
  OrderAfterLeader(3);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for mark of 0"}));
  OrderAfterLeader(3);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(GpuGroupsTest, AGroupWaitsAgainForLaterWork) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(1);
  groups_->NoteLeaderWork();
  record_.Take();
  OrderAfterLeader(1);
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
  // Group 2 missed the first mark and needs only the last.
  OrderAfterLeader(2);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for mark of 0"}));
}

TEST_F(GpuGroupsTest, TheLeaderNeverWaitsForItself) {
  groups_->NoteLeaderWork();
  OrderAfterLeader(0);
  EXPECT_EQ(record_.Take(), Calls());
  // Nor does it take the work from the others.
  OrderAfterLeader(1);
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
}

TEST_F(GpuGroupsTest, AReadWaitsForTheLastWrite) {
  Write();
  EXPECT_EQ(record_.Take(), Calls());
  groups_->BeginRead(groups_->group(1), kState);
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
  groups_->EndRead(groups_->group(1), kState);
  Read(1);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(GpuGroupsTest, AWriteWaitsForExactlyTheGroupsThatHaveRead) {
  Read(1);
  Read(3);
  Read(3);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1", "0 waits for 3"}));
  groups_->EndWrite(kState);
  // Those reads are behind it now.
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndWrite(kState);
  Read(2);
  record_.Take();
  groups_->BeginWrite(kState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 2"}));
  groups_->EndWrite(kState);
}

TEST_F(GpuGroupsTest, ReadsOfSeveralGroupsRunTogether) {
  groups_->BeginRead(groups_->group(1), kState);
  std::thread other([this] { Read(2); });
  other.join();  // hangs if the first read kept the second out
  groups_->EndRead(groups_->group(1), kState);
}

TEST_F(GpuGroupsTest, AReadStaysOutWhileAWriteIsLaunched) {
  groups_->BeginWrite(kState);
  std::atomic<bool> read{false};
  std::thread reader([&] {
    groups_->BeginRead(groups_->group(1), kState);
    read = true;
    groups_->EndRead(groups_->group(1), kState);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(read);
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndWrite(kState);
  reader.join();
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
}

TEST_F(GpuGroupsTest, AWriteStaysOutWhileAReadIsLaunched) {
  groups_->BeginRead(groups_->group(1), kState);
  std::atomic<bool> written{false};
  std::thread writer([&] {
    groups_->BeginWrite(kState);
    written = true;
    groups_->EndWrite(kState);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(written);
  groups_->EndRead(groups_->group(1), kState);
  writer.join();
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1"}));
}

// An op that reads or changes one variable may wait for memory that an op gives
// back that has to do with another.
TEST_F(GpuGroupsTest, AReadGoesOnWhileAnotherVariableIsChanged) {
  Write();
  groups_->BeginWrite(kState);
  std::thread reader([&] {  // hangs if the write keeps it out
    groups_->BeginRead(groups_->group(1), kOtherState);
    groups_->EndRead(groups_->group(1), kOtherState);
  });
  reader.join();
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
  groups_->EndWrite(kState);
  // What has been enqueued since the mark.
  Read(1);
  EXPECT_EQ(record_.Take(), Calls({"0 marks", "1 waits for mark of 0"}));
}

TEST_F(GpuGroupsTest, AWriteGoesOnWhileAnotherVariableIsRead) {
  groups_->BeginRead(groups_->group(1), kOtherState);
  std::thread writer([&] { Write(); });
  writer.join();
  EXPECT_EQ(record_.Take(), Calls());
  groups_->EndRead(groups_->group(1), kOtherState);
  groups_->BeginWrite(kOtherState);
  EXPECT_EQ(record_.Take(), Calls({"0 waits for 1"}));
  groups_->EndWrite(kOtherState);
}

// The leader's stream, when it records a mark, lets the test look in.
class WatchedLeader : public FakeStreamGroup {
 public:
  using FakeStreamGroup::FakeStreamGroup;
  void RecordMark() override {
    FakeStreamGroup::RecordMark();
    if (when_marking) when_marking();
  }
  std::function<void()> when_marking;
};

TEST(OrderAfterLeaderTest, AGroupWaitsAlsoWhileAnotherRecordsTheMark) {
  StreamRecord record;
  std::vector<std::unique_ptr<StreamGroup>> list;
  list.push_back(std::make_unique<WatchedLeader>(0, 0, &record));
  auto* leader = static_cast<WatchedLeader*>(list[0].get());
  for (int i = 1; i < 3; ++i) {
    list.push_back(std::make_unique<FakeStreamGroup>(0, i, &record));
  }
  GpuGroups groups(std::move(list));
  std::thread other;
  leader->when_marking = [&] {
    other = std::thread([&] { groups.OrderAfterLeader(groups.group(2)); });
    // Time to return without a wait, were it to do so.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  groups.NoteLeaderWork();
  groups.OrderAfterLeader(groups.group(1));
  other.join();
  EXPECT_EQ(record.Take(), Calls({"0 marks", "1 waits for mark of 0",
                                  "2 waits for mark of 0"}));
}

// Streams as counters: a leader's mark stands for the writes before it, a
// group that waits for it has them behind itself.
struct CountedWrites {
  std::atomic<int> written{0};
  std::atomic<int> marked{0};
};

class CountingGroup : public StreamGroup {
 public:
  CountingGroup(int index, CountedWrites* writes)
      : StreamGroup(0, index), writes_(writes) {}
  void WaitFor(StreamGroup*) override {}
  void RecordMark() override { writes_->marked = writes_->written.load(); }
  void WaitForMark(StreamGroup*) override { seen_ = writes_->marked.load(); }
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

TEST(StateOrderTest, EveryReadIsBehindEveryEarlierWrite) {
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

// What the statistics say of each group.
TEST_F(GpuGroupsTest, WaitsAndEventsAreCounted) {
  using Counts = std::vector<std::pair<int64_t, int64_t>>;
  auto counts = [this] {
    Counts all;
    for (const StreamGroupStats& group : groups_->Stats()) {
      all.emplace_back(group.waits, group.events);
    }
    return all;
  };
  EXPECT_EQ(counts(), Counts({{0, 0}, {0, 0}, {0, 0}, {0, 0}}));
  groups_->group(1)->OrderAfter(groups_->group(2));
  EXPECT_EQ(counts(), Counts({{0, 0}, {1, 0}, {0, 1}, {0, 0}}));
  const auto event = groups_->group(2)->NewEvent();
  groups_->group(2)->RecordEvent(event.get());
  groups_->group(3)->OrderAfterEvent(groups_->group(2), event.get());
  EXPECT_EQ(counts(), Counts({{0, 0}, {1, 0}, {0, 2}, {1, 0}}));
  groups_->NoteLeaderWork();
  OrderAfterLeader(1);
  OrderAfterLeader(1);
  OrderAfterLeader(3);
  EXPECT_EQ(counts(), Counts({{0, 1}, {2, 0}, {0, 2}, {2, 0}}));
}

TEST_F(GpuGroupsTest, ErrorsSayWhichGroupHadNoMemory) {
  const absl::Status error = absl::ResourceExhaustedError("no tensor");
  const int64_t start = groups_->memory_failures();
  EXPECT_EQ(groups_->WithMemoryOfGroups(error, start), error);
  AllocatorStats stats;
  stats.bytes_in_use = 3 << 20;
  stats.bytes_limit = 4 << 20;
  groups_->group(3)->NoteNoMemory(2 << 20, stats);
  const int64_t middle = groups_->memory_failures();
  groups_->group(1)->NoteNoMemory(1 << 10, std::nullopt);

  const std::string third =
      "Stream group 3 of GPU 2 had no 2.00MiB: 3.00MiB in use, of at most "
      "4.00MiB";
  const std::string first = "Stream group 1 of GPU 2 had no 1.0KiB";
  absl::Status status = groups_->WithMemoryOfGroups(error, start);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "no tensor\n\t" + first + "\n\t" + third);
  // Of a step that began later.
  status = groups_->WithMemoryOfGroups(error, middle);
  EXPECT_EQ(status.message(), "no tensor\n\t" + first);
  EXPECT_EQ(groups_->WithMemoryOfGroups(error, groups_->memory_failures()),
            error);
  // Where the memory was not missed, or the step did not fail.
  const absl::Status other = absl::InternalError("another");
  EXPECT_EQ(groups_->WithMemoryOfGroups(other, start), other);
  EXPECT_TRUE(groups_->WithMemoryOfGroups(absl::OkStatus(), start).ok());
}

TEST(GpuGroupsRegistryTest, TheFirstGroupsOfAGpuStay) {
  StreamRecord record;
  EXPECT_EQ(FindGpuGroups(5), nullptr);
  GpuGroups* first = RegisterGpuGroups(5, NewFakeGroups(5, 2, &record));
  EXPECT_EQ(RegisterGpuGroups(5, NewFakeGroups(5, 3, &record)), first);
  EXPECT_EQ(first->size(), 2);
  EXPECT_EQ(FindGpuGroups(5), first);
  GpuGroups* other = RegisterGpuGroups(1, NewFakeGroups(1, 2, &record));
  EXPECT_EQ(AllGpuGroups(), std::vector<GpuGroups*>({other, first}));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
