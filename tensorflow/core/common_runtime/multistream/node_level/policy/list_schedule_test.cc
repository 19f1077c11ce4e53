// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow::multistream {
namespace {

std::string Schedule(const std::string& drawing, const PolicyOptions& options,
                     const std::vector<int>& groups, double wait_weight) {
  const DrawnGraph drawn(drawing);
  return drawn.Say(ListSchedule(drawn.graph, options, groups, wait_weight));
}

TEST(ListScheduleTest, ANodeGoesWhereItEndsFirst) {
  const std::string graph = "a -> b(10) c(9) -> d";
  EXPECT_EQ(Schedule(graph, OptionsOf(2, 2), {0, 1}, 1), "0: a b d; 1: c");
  // If a wait takes 20 us, c ends earlier after b, in b's group.
  EXPECT_EQ(Schedule(graph, OptionsOf(2, 20), {0, 1}, 1), "0: a b c d");
  // The same if a wait counts as 20 us.
  EXPECT_EQ(Schedule(graph, OptionsOf(2, 2), {0, 1}, 10), "0: a b c d");
}

TEST(ListScheduleTest, WhatIsFarthestFromTheEndGoesFirst) {
  EXPECT_EQ(Schedule("a(5); b -> c(10)", OptionsOf(2, 1), {0, 1}, 1),
            "0: b c; 1: a");
}

TEST(ListScheduleTest, OnlyTheGivenGroupsAreUsedAndOfEqualOnesTheFirst) {
  EXPECT_EQ(Schedule("a b c d e f", OptionsOf(5, 0), {3, 1}, 1),
            "1: b d f; 3: a c e");
}

TEST(ListScheduleTest, FixedNodesStayAndTakeTimeOfTheirGroup) {
  EXPECT_EQ(Schedule("a@2(10) b@0(9) c(3) d(2)", OptionsOf(3, 0), {0, 1}, 1),
            "0: b; 1: c d; 2: a");
}

// Where all groups are busy, a node that leaves its inputs' group for a small
// gain delays all others.
TEST(ListScheduleTest, AGreaterWeightOfWaitsMakesFewer) {
  const PolicyGraph graph = ForkJoin(/*branches=*/50, /*length=*/40, 10);
  const PolicyOptions options = OptionsOf(4, 5);
  const StepEstimate light =
      StepModel(graph, options)
          .Estimate(ListSchedule(graph, options, {0, 1, 2, 3}, 1));
  const StepEstimate heavy =
      StepModel(graph, options)
          .Estimate(ListSchedule(graph, options, {0, 1, 2, 3}, 3));
  EXPECT_LT(heavy.waits, light.waits / 4);
  EXPECT_LT(heavy.step_us, light.step_us);
}

}  // namespace
}  // namespace tensorflow::multistream
