// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/fewer_waits.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow::multistream {
namespace {

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
