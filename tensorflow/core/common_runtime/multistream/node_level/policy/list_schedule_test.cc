// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow {
namespace multistream {
namespace {

using Groups = std::vector<int>;

PolicyOptions Options(int group_count, double wait_us) {
  PolicyOptions options;
  options.group_count = group_count;
  options.wait_us = wait_us;
  return options;
}

//   a (1) --> b (10) --> d (1)       wait 2: c ends first in group 1
//        '--> c (9) ---'
TEST(ListScheduleTest, ANodeGoesWhereItEndsFirst) {
  PolicyGraph graph;
  const int a = Add(&graph, {}, 1);
  const int b = Add(&graph, {a}, 10);
  const int c = Add(&graph, {a}, 9);
  Add(&graph, {b, c}, 1);
  EXPECT_EQ(ListSchedule(graph, Options(2, 2), {0, 1}, 1),
            (Groups{0, 0, 1, 0}));
  // If a wait takes 20 us, c ends earlier after b, in b's group.
  EXPECT_EQ(ListSchedule(graph, Options(2, 20), {0, 1}, 1),
            (Groups{0, 0, 0, 0}));
  // The same if a wait counts as 20 us.
  EXPECT_EQ(ListSchedule(graph, Options(2, 2), {0, 1}, 10),
            (Groups{0, 0, 0, 0}));
}

//   a (1), b (1) --> c (10)       2 groups: the long path goes first.
TEST(ListScheduleTest, WhatIsFarthestFromTheEndGoesFirst) {
  PolicyGraph graph;
  Add(&graph, {}, 5);
  const int b = Add(&graph, {}, 1);
  Add(&graph, {b}, 10);
  EXPECT_EQ(ListSchedule(graph, Options(2, 1), {0, 1}, 1), (Groups{1, 0, 0}));
}

TEST(ListScheduleTest, OnlyTheGivenGroupsAreUsedAndOfEqualOnesTheFirst) {
  PolicyGraph graph;
  for (int i = 0; i < 6; ++i) Add(&graph);
  EXPECT_EQ(ListSchedule(graph, Options(5, 0), {3, 1}, 1),
            (Groups{3, 1, 3, 1, 3, 1}));
}

TEST(ListScheduleTest, FixedNodesStayAndTakeTimeOfTheirGroup) {
  PolicyGraph graph;
  Add(&graph, {}, 10, /*group=*/2);
  Add(&graph, {}, 9, /*group=*/0);
  Add(&graph, {}, 3);
  Add(&graph, {}, 2);
  EXPECT_EQ(ListSchedule(graph, Options(3, 0), {0, 1}, 1),
            (Groups{2, 0, 1, 1}));
}

// Where all groups are busy, a node that leaves its inputs' group for a small
// gain delays all others.
TEST(ListScheduleTest, AGreaterWeightOfWaitsMakesFewer) {
  const PolicyGraph graph = ForkJoin(/*branches=*/50, /*length=*/40, 10);
  const PolicyOptions options = Options(4, 5);
  const StepEstimate light = EstimateStep(
      graph, ListSchedule(graph, options, {0, 1, 2, 3}, 1), options);
  const StepEstimate heavy = EstimateStep(
      graph, ListSchedule(graph, options, {0, 1, 2, 3}, 3), options);
  EXPECT_LT(heavy.waits, light.waits / 4);
  EXPECT_LT(heavy.step_us, light.step_us);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
