// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The groups of a GPU and the parts that they share: load, statistics, errors
// without memory, reclaimable memory.

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/stream/reclaimable_memory.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow::multistream {
namespace {

class GpuGroupsTest : public ::testing::Test {
 protected:
  // Starts a step on the least loaded group.
  StreamGroup* Start(absl::Span<const int> among = {0, 1, 2, 3}) {
    return groups_->StartStep(among);
  }

  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

TEST_F(GpuGroupsTest, AStepGoesToTheLeastLoadedGroupInTurn) {
  // Idle groups, then groups that are equally busy.
  for (bool ends : {true, false}) {
    for (int i = 0; i < 12; ++i) {
      StreamGroup* group = Start();
      EXPECT_EQ(group->index(), i % 4);
      if (ends) groups_->EndStep(group, true);
    }
  }
  groups_->EndStep(groups_->group(2), true);
  EXPECT_EQ(Start()->index(), 2);
  for (int i = 0; i < 2; ++i) groups_->EndStep(groups_->group(1), true);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Start()->index(), 1);
}

TEST_F(GpuGroupsTest, AStepGoesToTheLeastLoadedOfTheGroupsThatItMayHave) {
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Start({1, 3})->index(), 1 + i % 2 * 2);
  groups_->EndStep(groups_->group(3), true);
  EXPECT_EQ(Start({1, 3})->index(), 3);
  EXPECT_EQ(Start({0, 1, 3})->index(), 0);
}

TEST_F(GpuGroupsTest, PinnedStepsLeaveTheTurnOfOthersAsItIs) {
  for (int i = 0; i < 8; ++i) {
    groups_->EndStep(groups_->StartStep({2}, /*is_pinned=*/true), true);
    StreamGroup* pinned = groups_->StartStep({1, 2, 3}, /*is_pinned=*/true);
    EXPECT_EQ(pinned->index(), 1 + i % 3);
    groups_->EndStep(pinned, true);
    StreamGroup* any = Start();
    EXPECT_EQ(any->index(), i % 4);
    groups_->EndStep(any, true);
  }
}

TEST_F(GpuGroupsTest, StepsPinnedToSomeGroupsLeaveTheTurnOfOthersAsItIs) {
  for (int i = 0; i < 8; ++i) {
    for (int first : {0, 2}) {
      StreamGroup* group =
          groups_->StartStep({first, first + 1}, /*is_pinned=*/true);
      EXPECT_EQ(group->index(), first + i % 2);
      groups_->EndStep(group, true);
    }
  }
}

TEST_F(GpuGroupsTest, StepsThatMustRunOnAGroupCountAsItsLoad) {
  for (int round = 0; round < 2; ++round) {
    groups_->StartStepOn(groups_->leader());
    for (int i = 1; i < 4; ++i) EXPECT_EQ(Start()->index(), i);
  }
}

TEST_F(GpuGroupsTest, TheMostStepsOfLateAreRememberedForAWhile) {
  EXPECT_EQ(groups_->recent_most_steps(), 0);
  const auto run = [this](int steps) {
    for (int i = 0; i < steps; ++i) groups_->EndStep(Start(), true);
  };
  run(10);
  EXPECT_EQ(groups_->recent_most_steps(), 1);
  for (int i = 0; i < 5; ++i) groups_->StartStepOn(groups_->leader());
  EXPECT_EQ(groups_->recent_most_steps(), 5);
  for (int i = 0; i < 5; ++i) groups_->EndStep(groups_->leader(), true);
  run(GpuGroups::kRecentSteps - 1);
  EXPECT_EQ(groups_->recent_most_steps(), 5);
  run(GpuGroups::kRecentSteps);
  EXPECT_EQ(groups_->recent_most_steps(), 1);
}

TEST_F(GpuGroupsTest, ManyThreadsLoadTheGroupsEvenly) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) Start();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const StreamGroupStats& stats : groups_->Stats()) {
    EXPECT_EQ(stats.steps_running, 200);
  }
}

TEST_F(GpuGroupsTest, StatsAreThoseOfTheStepsAndOfTheAllocator) {
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
  for (int i = 0; i < 6; ++i) Start();  // 0 1 2 3 0 1
  groups_->EndStep(groups_->group(0), true);
  for (int i = 0; i < 2; ++i) groups_->EndStep(groups_->group(1), false);
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
    // The others have no allocator yet.
    EXPECT_EQ(stats[i].bytes_in_use, i == 3 ? 10 : 0);
    EXPECT_EQ(stats[i].peak_bytes_in_use, i == 3 ? 20 : 0);
    EXPECT_EQ(stats[i].bytes_limit, i == 3 ? 30 : 0);
  }
}

TEST_F(GpuGroupsTest, WaitsAndEventsAreCounted) {
  using Counts = std::vector<std::pair<int64_t, int64_t>>;
  const auto counts = [this] {
    Counts all;
    for (const StreamGroupStats& group : groups_->Stats()) {
      all.emplace_back(group.waits, group.events);
    }
    return all;
  };
  groups_->group(1)->OrderAfter(groups_->group(2));
  EXPECT_EQ(counts(), Counts({{0, 0}, {1, 0}, {0, 1}, {0, 0}}));
  const auto event = groups_->group(2)->NewEvent();
  groups_->group(2)->RecordEvent(event.get());
  groups_->group(3)->OrderAfterEvent(groups_->group(2), event.get());
  EXPECT_EQ(counts(), Counts({{0, 0}, {1, 0}, {0, 2}, {1, 0}}));
  groups_->NoteLeaderWork();
  for (int i : {1, 1, 3}) groups_->OrderAfterLeader(groups_->group(i));
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
  // A step that began later.
  status = groups_->WithMemoryOfGroups(error, middle);
  EXPECT_EQ(status.message(), "no tensor\n\t" + first);
  EXPECT_EQ(groups_->WithMemoryOfGroups(error, groups_->memory_failures()),
            error);
  // Steps that failed for another reason, or not at all.
  const absl::Status other = absl::InternalError("another");
  EXPECT_EQ(groups_->WithMemoryOfGroups(other, start), other);
  EXPECT_TRUE(groups_->WithMemoryOfGroups(absl::OkStatus(), start).ok());
}

TEST_F(GpuGroupsTest, ReclaimingAsksAllOwnersForTheGroup) {
  struct Owner final : public ReclaimableMemory::Owner {
    void GiveBack(StreamGroup* group) override { asked.push_back(group); }
    std::vector<StreamGroup*> asked;
  } first, second;
  StreamGroup* group = groups_->group(1);
  group->reclaimable()->Add(&first);
  group->reclaimable()->Add(&second);
  group->reclaimable()->Reclaim(group);
  EXPECT_EQ(first.asked, std::vector<StreamGroup*>{group});
  EXPECT_EQ(second.asked, std::vector<StreamGroup*>{group});
  group->reclaimable()->Remove(&first);
  groups_->ReclaimMemory();  // of all groups
  EXPECT_EQ(first.asked.size(), 1);
  EXPECT_EQ(second.asked.size(), 2);
  group->reclaimable()->Remove(&second);
}

TEST_F(GpuGroupsTest, MemoryIsReclaimableWhileAnyHolderLives) {
  EXPECT_FALSE(groups_->HaveReclaimableMemory());
  ReclaimableMemory* memory = groups_->group(1)->reclaimable();
  std::optional<ReclaimableMemory::Holder> first(memory), second(memory);
  first.reset();
  EXPECT_TRUE(memory->IsHeld());
  EXPECT_TRUE(groups_->HaveReclaimableMemory());
  second.reset();
  EXPECT_FALSE(memory->IsHeld());
  EXPECT_FALSE(groups_->HaveReclaimableMemory());
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
}  // namespace tensorflow::multistream
