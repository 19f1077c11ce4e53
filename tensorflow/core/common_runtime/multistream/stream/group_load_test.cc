// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/group_load.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

class GroupLoadTest : public ::testing::Test {
 protected:
  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

TEST_F(GroupLoadTest, AStepGoesToTheLeastLoadedGroupInTurn) {
  // Idle groups, then groups that are equally busy.
  for (bool ends : {true, false}) {
    for (int i = 0; i < 12; ++i) {
      StreamGroup* group = groups_->StartStep(groups_->size());
      EXPECT_EQ(group->index(), i % 4);
      if (ends) groups_->EndStep(group, true);
    }
  }
  groups_->EndStep(groups_->group(2), true);
  EXPECT_EQ(groups_->StartStep(groups_->size())->index(), 2);
  for (int i = 0; i < 2; ++i) groups_->EndStep(groups_->group(1), true);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(groups_->StartStep(groups_->size())->index(), 1);
  }
}

TEST_F(GroupLoadTest, StepsThatMustRunOnAGroupCountAsItsLoad) {
  for (int round = 0; round < 2; ++round) {
    groups_->StartStepOn(groups_->leader());
    for (int i = 1; i < 4; ++i) {
      EXPECT_EQ(groups_->StartStep(groups_->size())->index(), i);
    }
  }
}

TEST_F(GroupLoadTest, TheMostStepsOfLateAreRememberedForAWhile) {
  EXPECT_EQ(groups_->recent_most_steps(), 0);
  const auto run = [this](int steps) {
    for (int i = 0; i < steps; ++i) {
      groups_->EndStep(groups_->StartStep(groups_->size()), true);
    }
  };
  run(10);
  EXPECT_EQ(groups_->recent_most_steps(), 1);
  for (int i = 0; i < 5; ++i) groups_->StartStepOn(groups_->leader());
  EXPECT_EQ(groups_->recent_most_steps(), 5);
  for (int i = 0; i < 5; ++i) groups_->EndStep(groups_->leader(), true);
  run(GroupLoad::kRecentSteps - 1);
  EXPECT_EQ(groups_->recent_most_steps(), 5);
  run(GroupLoad::kRecentSteps);
  EXPECT_EQ(groups_->recent_most_steps(), 1);
}

TEST_F(GroupLoadTest, ManyThreadsLoadTheGroupsEvenly) {
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
