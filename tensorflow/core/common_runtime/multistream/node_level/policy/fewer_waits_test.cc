// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/fewer_waits.h"

#include <gtest/gtest.h>

#include <random>
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

//   lane 0:  a         c --> d       b waits for a, c for b.
//   lane 1:    '-> b --^
TEST(FewerWaitsTest, ANodeGoesToTheGroupOfItsNeighbours) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a});
  const int c = Add(&graph, {b});
  Add(&graph, {c});
  EXPECT_EQ(SaveWaits(graph, Options(2, 1), {0, 1, 0, 0}),
            (Groups{0, 0, 0, 0}));
}

// Each of b1 and b2 alone has as many neighbours in its group as outside.
//   lane 0:  a                 c
//   lane 1:    '-> b1 --> b2 --^
TEST(FewerWaitsTest, AShortPieceGoesAsAWhole) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b1 = Add(&graph, {a});
  const int b2 = Add(&graph, {b1});
  Add(&graph, {b2});
  EXPECT_EQ(SaveWaits(graph, Options(2, 1), {0, 1, 1, 0}),
            (Groups{0, 0, 0, 0}));
}

//   lane 0:  a --> b (10) --> d      c runs beside b.
//   lane 1:   '--> c (10) ----^
TEST(FewerWaitsTest, WhatMakesTheStepShorterStays) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a}, 10);
  const int c = Add(&graph, {a}, 10);
  Add(&graph, {b, c});
  const Groups split = {0, 0, 1, 0};
  EXPECT_EQ(SaveWaits(graph, Options(2, 1), split), split);
}

TEST(FewerWaitsTest, FixedNodesStay) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a}, 1, /*group=*/1);
  Add(&graph, {b});
  EXPECT_EQ(SaveWaits(graph, Options(2, 1), {0, 1, 0})[1], 1);
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
    const PolicyOptions options = Options(3, i % 3);
    Groups groups;
    for (const PolicyNode& node : graph) {
      groups.push_back(node.group.value_or(random() % 3));
    }
    const Groups saved = SaveWaits(graph, options, groups);
    const StepEstimate before = EstimateStep(graph, groups, options);
    const StepEstimate after = EstimateStep(graph, saved, options);
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
}  // namespace multistream
}  // namespace tensorflow
