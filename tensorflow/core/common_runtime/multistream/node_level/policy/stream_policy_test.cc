// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/stream_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow::multistream {
namespace {

using Groups = std::vector<int>;

int GroupsIn(Groups groups) {
  std::sort(groups.begin(), groups.end());
  return static_cast<int>(std::unique(groups.begin(), groups.end()) -
                          groups.begin());
}

class RandomGraphs : public ::testing::TestWithParam<Policy> {};

INSTANTIATE_TEST_SUITE_P(AllPolicies, RandomGraphs,
                         ::testing::Values(Policy::kNone, Policy::kEmbedding,
                                           Policy::kFullGraph, Policy::kCost));

TEST_P(RandomGraphs, GetGroupsOfTheGpuAlwaysTheSameAndKeepFixedOnes) {
  constexpr int kGroups = 5;
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.group_count = kGroups;
  drawn.lookups = 0.2;
  drawn.dense = 0.1;
  for (int i = 0; i < 200; ++i) {
    drawn.nodes = i % 60;
    drawn.farthest_input = 1 + i % 30;
    drawn.fixed = i % 3 * 0.2;
    PolicyGraph graph = RandomGraph(drawn, &random);
    const PolicyOptions options = OptionsOf(kGroups, 1, i % kGroups);
    const Groups groups = AssignGroups(GetParam(), graph, options);
    ASSERT_EQ(groups.size(), graph.size());
    for (size_t j = 0; j < graph.size(); ++j) {
      ASSERT_GE(groups[j], 0) << i;
      ASSERT_LT(groups[j], kGroups) << i;
      ASSERT_EQ(graph[j].group.value_or(groups[j]), groups[j]) << i;
    }
    ASSERT_EQ(AssignGroups(GetParam(), graph, options), groups) << i;
    for (PolicyNode& node : graph) node.group.reset();
    ASSERT_EQ(AssignGroups(GetParam(), graph, OptionsOf(1, 1)),
              Groups(graph.size(), 0))
        << i;
  }
}

std::string Assigned(Policy policy, const std::string& drawing,
                     const PolicyOptions& options) {
  const DrawnGraph drawn(drawing);
  return drawn.Say(AssignGroups(policy, drawn.graph, options));
}

TEST(StreamPolicyTest, WithoutAPolicyFreeNodesAreInTheCallersGroup) {
  EXPECT_EQ(Assigned(Policy::kNone, "a -> b c@3 d -> e", OptionsOf(4, 1, 2)),
            "2: a b d e; 3: c");
}

TEST(StreamPolicyTest, InTheFullGraphBranchesAreApart) {
  EXPECT_EQ(Assigned(Policy::kFullGraph, "a -> b(2) c -> d", OptionsOf(4, 1)),
            "0: a b d; 1: c");
}

// 2 groups: 9 and 5 | 7
TEST(EmbeddingPolicyTest, TheCostliestGoFirstToTheGroupWithTheLeastToDo) {
  const std::string graph =
      "l0(lookup,4) -> pool0; l1(lookup,9) l2(lookup,7) pool0 -> concat(100)"
      " -> d(dense,100)";
  EXPECT_EQ(Assigned(Policy::kEmbedding, graph, OptionsOf(2, 1)),
            "0: l1 concat d; 1: l0 pool0 l2");
  // With another caller's group, the costliest lookup goes there.
  EXPECT_EQ(Assigned(Policy::kEmbedding, graph, OptionsOf(3, 1, 2)),
            "0: l2; 1: l0 pool0; 2: l1 concat d");
}

TEST(EmbeddingPolicyTest, EqualOnesGoToTheCallersGroupAndThenToTheLowest) {
  EXPECT_EQ(Assigned(Policy::kEmbedding,
                     "a(lookup) b(lookup) c(lookup) d(lookup) e(lookup)",
                     OptionsOf(3, 1, 1)),
            "0: b e; 1: a d; 2: c");
}

// The lookup runs beside the first layer.
TEST(EmbeddingPolicyTest, WhatRunsBesideTheLookupsCounts) {
  EXPECT_EQ(Assigned(Policy::kEmbedding,
                     "l(lookup,3) d0(dense,9) -> concat -> d1(dense)",
                     OptionsOf(2, 1)),
            "0: d0 concat d1; 1: l");
  EXPECT_EQ(Assigned(Policy::kEmbedding,
                     "l(lookup,3) d0@1(dense,9) -> concat -> d1(dense)",
                     OptionsOf(2, 1)),
            "0: l concat d1; 1: d0");
}

TEST(EmbeddingPolicyTest, AClusterGoesWithItsFixedLookup) {
  EXPECT_EQ(Assigned(Policy::kEmbedding,
                     "a@2(lookup,9) -> pool; b(lookup) c(lookup) d(lookup)",
                     OptionsOf(3, 1)),
            "0: b d; 1: c; 2: a pool");
}

double StepUs(Policy policy, const PolicyGraph& graph,
              const PolicyOptions& options) {
  return StepModel(graph, options)
      .Estimate(AssignGroups(policy, graph, options))
      .step_us;
}

TEST(CostPolicyTest, NoSplitIsSlowerThanOneGroupOrHardlyFaster) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.group_count = 4;
  drawn.lookups = 0.1;
  int splits = 0;
  for (int i = 0; i < 400; ++i) {
    drawn.nodes = i % 50;
    drawn.farthest_input = 1 + i % 20;
    drawn.fixed = i % 3 * 0.2;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const PolicyOptions options = OptionsOf(4, /*wait_us=*/i % 5 * 3, i % 4);
    const Groups groups = AssignGroups(Policy::kCost, graph, options);
    if (groups == AssignGroups(Policy::kNone, graph, options)) continue;
    ++splits;
    ASSERT_LT(StepModel(graph, options).Estimate(groups).step_us,
              0.95 * StepUs(Policy::kNone, graph, options))
        << i;
  }
  EXPECT_GT(splits, 100);
}

// Some lookups of unequal cost, a few dense layers, and the lookups' gradients.
PolicyGraph RandomRecommender(std::mt19937* random) {
  auto cost_us = [random](int most) {
    return static_cast<double>(1 + (*random)() % most);
  };
  PolicyGraph graph;
  std::vector<int> ids;
  std::vector<int> pools;
  for (int i = 2 + static_cast<int>((*random)() % 12); i > 0; --i) {
    ids.push_back(Add(&graph, {}, cost_us(3)));
    const int lookup = Add(&graph, {ids.back()}, cost_us(20));
    graph[lookup].lookup = true;
    pools.push_back(Add(&graph, {lookup}, cost_us(5)));
  }
  int last = Add(&graph, pools, 3);
  for (int i = 0; i < 4; ++i) {
    last = Add(&graph, {last}, 10);
    graph[last].dense = true;
  }
  for (int id : ids) {
    Add(&graph, {Add(&graph, {last}, cost_us(3)), id}, cost_us(20));
  }
  return graph;
}

TEST(CostPolicyTest, NoOtherPolicyIsClearlyShorter) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.nodes = 200;
  drawn.most_inputs = 2;
  for (int i = 0; i < 400; ++i) {
    drawn.farthest_input = 1 + i % 50;
    const PolicyGraph graph =
        i % 2 == 0 ? RandomGraph(drawn, &random) : RandomRecommender(&random);
    const PolicyOptions options = OptionsOf(2 + i % 4, /*wait_us=*/i % 7);
    const Groups groups = AssignGroups(Policy::kCost, graph, options);
    const double ours = StepModel(graph, options).Estimate(groups).step_us;
    const bool split = GroupsIn(groups) > 1;
    for (Policy other : {Policy::kEmbedding, Policy::kFullGraph}) {
      ASSERT_GE(StepUs(other, graph, options),
                split ? ours / 1.02 : 0.95 * ours)
          << i;
    }
  }
}

TEST(CostPolicyTest, WaitsAreSavedOnceNodesArePlaced) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.nodes = 1000;
  drawn.most_inputs = 2;
  drawn.most_cost_us = 20;
  drawn.farthest_input = 40;
  const PolicyGraph graph = RandomGraph(drawn, &random);
  const PolicyOptions options = OptionsOf(2, /*wait_us=*/5);
  const StepEstimate ours =
      StepModel(graph, options)
          .Estimate(AssignGroups(Policy::kCost, graph, options));
  for (const Groups& placed :
       {AssignGroups(Policy::kFullGraph, graph, options),
        ListSchedule(graph, options, {0, 1}, /*wait_weight=*/1),
        ListSchedule(graph, options, {0, 1}, /*wait_weight=*/3)}) {
    const StepEstimate before = StepModel(graph, options).Estimate(placed);
    EXPECT_LT(ours.step_us, 0.99 * before.step_us);
    EXPECT_LT(ours.waits, before.waits);
  }
}

TEST(CostPolicyTest, LongBranchesTakeNearlyTheirShareOfTheTime) {
  for (int group_count : {2, 4, 8}) {
    for (int branches : {group_count, 2 * group_count, 20}) {
      const PolicyGraph graph = ForkJoin(branches, /*length=*/40, 10);
      const PolicyOptions options = OptionsOf(group_count, /*wait_us=*/5);
      const double ideal = branches * 400.0 / group_count;
      EXPECT_LT(StepUs(Policy::kCost, graph, options), 1.15 * ideal)
          << branches << " branches, " << group_count << " groups";
    }
  }
}

// 7 nodes have 2187 ways to go to 3 groups.
TEST(CostPolicyTest, SmallRandomGraphsAreNearTheBestOfAllAssignments) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  double ratios = 0;
  constexpr int kGraphs = 200;
  for (int i = 0; i < kGraphs; ++i) {
    drawn.nodes = 4 + i % 4;
    drawn.farthest_input = 3 + i % 4;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const PolicyOptions options = OptionsOf(3, /*wait_us=*/1);
    double best = StepUs(Policy::kNone, graph, options);
    ForAllAssignments(drawn.nodes, 3, [&](const Groups& groups) {
      best = std::min(best, StepModel(graph, options).Estimate(groups).step_us);
    });
    const double ours = StepUs(Policy::kCost, graph, options);
    ASSERT_GE(ours, best - 1e-9) << i;
    ratios += best == 0 ? 1 : ours / best;
  }
  EXPECT_LT(ratios / kGraphs, 1.02);
}

TEST(CostPolicyTest, ASplitHasToBeWorthItsWaits) {
  EXPECT_EQ(Assigned(Policy::kCost, "a(10) -> b(10) -> c", OptionsOf(4, 1, 3)),
            "3: a b c");
  const std::string graph = "x -> a(50) b(50) -> y";
  EXPECT_EQ(Assigned(Policy::kCost, graph, OptionsOf(4, 5, 2)),
            "0: b; 2: x a y");
  EXPECT_EQ(Assigned(Policy::kCost, graph, OptionsOf(4, 200, 2)), "2: x a b y");
  // b of 4 us saves less than 5 percent of the step.
  EXPECT_EQ(Assigned(Policy::kCost, "a(100) b(4)", OptionsOf(2, 0.01)),
            "0: a b");
  EXPECT_EQ(Assigned(Policy::kCost, "a(100) b(10)", OptionsOf(2, 0.01)),
            "0: a; 1: b");
}

// Two branches of 400 us, and 6 nodes of half a microsecond beside them: less
// than 2 percent for four groups more.
TEST(CostPolicyTest, FewerGroupsAreTakenIfTheyAreNearlyAsFast) {
  PolicyGraph graph = ForkJoin(/*branches=*/2, /*length=*/40, 10);
  for (int i = 0; i < 6; ++i) Add(&graph, {}, 0.5);
  const PolicyOptions options = OptionsOf(8, /*wait_us=*/0);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kFullGraph, graph, options)), 8);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kCost, graph, options)), 2);
}

}  // namespace
}  // namespace tensorflow::multistream
