// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

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

using Groups = std::vector<int>;

// The groups that nodes have in place of `groups`.
std::string Saved(const std::string& drawing, const Groups& groups) {
  const DrawnGraph drawn(drawing);
  return drawn.Say(SaveWaits(drawn.graph, OptionsOf(2, 1), groups));
}

TEST(FewerWaitsTest, ANodeGoesToTheGroupOfItsNeighbours) {
  EXPECT_EQ(Saved("a -> b -> c -> d", {0, 1, 0, 0}), "0: a b c d");
}

// Each of b1 and b2 alone has as many neighbours in its group as outside.
TEST(FewerWaitsTest, AShortPieceGoesAsAWhole) {
  EXPECT_EQ(Saved("a -> b1 -> b2 -> c", {0, 1, 1, 0}), "0: a b1 b2 c");
}

TEST(FewerWaitsTest, WhatMakesTheStepShorterStays) {
  EXPECT_EQ(Saved("a -> b(10) c(10) -> d", {0, 0, 1, 0}), "0: a b d; 1: c");
}

TEST(FewerWaitsTest, RandomGraphsNeverGetLongerOrMoreWaitsForNothing) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.group_count = 3;
  drawn.fixed = 0.2;
  int shorter = 0;
  int fewer = 0;
  for (int i = 0; i < 300; ++i) {
    drawn.nodes = i % 60;
    drawn.farthest_input = 1 + i % 20;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    // If waits take no time, steps are often as long with more of them.
    const PolicyOptions options = OptionsOf(3, i % 3);
    Groups groups;
    for (const PolicyNode& node : graph) {
      groups.push_back(node.group.value_or(random() % 3));
    }
    const Groups saved = SaveWaits(graph, options, groups);
    const StepEstimate before = StepModel(graph, options).Estimate(groups);
    const StepEstimate after = StepModel(graph, options).Estimate(saved);
    const double tolerance = 1e-6 * before.step_us;
    ASSERT_LE(after.step_us, before.step_us + tolerance) << i;
    shorter += after.step_us < before.step_us - tolerance;
    fewer += after.waits < before.waits;
    if (after.step_us > before.step_us - tolerance) {
      ASSERT_LE(after.waits, before.waits) << i;
    }
    for (size_t j = 0; j < graph.size(); ++j) {
      if (graph[j].group.has_value()) {
        ASSERT_EQ(saved[j], groups[j]) << i;
      }
    }
  }
  EXPECT_GT(shorter, 200);
  EXPECT_GT(fewer, 200);
}

}  // namespace
}  // namespace tensorflow::multistream
