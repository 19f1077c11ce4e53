// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

class GpuGroupsTest : public ::testing::Test {
 protected:
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

// Statistics of each group.
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
