// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/stream_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

namespace tensorflow {
namespace multistream {
namespace {

using Groups = std::vector<int>;

constexpr Policy kPolicies[] = {Policy::kNone, Policy::kEmbedding,
                                Policy::kFullGraph, Policy::kCost};

PolicyOptions Options(int group_count, int caller_group = 0,
                      double wait_us = 1) {
  PolicyOptions options;
  options.group_count = group_count;
  options.caller_group = caller_group;
  options.wait_us = wait_us;
  return options;
}

int GroupsIn(Groups groups) {
  std::sort(groups.begin(), groups.end());
  return static_cast<int>(std::unique(groups.begin(), groups.end()) -
                          groups.begin());
}

class RandomGraphs : public ::testing::TestWithParam<Policy> {
 protected:
  // The next random graph, with fixed nodes, lookups and dense nodes.
  PolicyGraph Next() {
    RandomGraphOptions drawn;
    drawn.nodes = static_cast<int>(random_() % 60);
    drawn.farthest_input = 1 + static_cast<int>(random_() % 30);
    drawn.group_count = kGroups;
    drawn.fixed = random_() % 3 * 0.2;
    drawn.lookups = 0.2;
    drawn.dense = 0.1;
    return RandomGraph(drawn, &random_);
  }

  static constexpr int kGroups = 5;
  std::mt19937 random_{1};
};

INSTANTIATE_TEST_SUITE_P(AllPolicies, RandomGraphs,
                         ::testing::ValuesIn(kPolicies));

TEST_P(RandomGraphs, FixedGroupsAreKeptAndAllAreThoseOfTheGpu) {
  for (int i = 0; i < 200; ++i) {
    const PolicyGraph graph = Next();
    const Groups groups =
        AssignGroups(GetParam(), graph, Options(kGroups, i % kGroups));
    ASSERT_EQ(groups.size(), graph.size());
    for (size_t j = 0; j < graph.size(); ++j) {
      ASSERT_GE(groups[j], 0) << i;
      ASSERT_LT(groups[j], kGroups) << i;
      if (graph[j].group.has_value()) {
        ASSERT_EQ(groups[j], *graph[j].group) << i;
      }
    }
  }
}

TEST_P(RandomGraphs, TheSameGraphHasTheSameGroups) {
  for (int i = 0; i < 50; ++i) {
    const PolicyGraph graph = Next();
    const PolicyGraph copy = graph;
    ASSERT_EQ(AssignGroups(GetParam(), graph, Options(kGroups)),
              AssignGroups(GetParam(), copy, Options(kGroups)))
        << i;
  }
}

TEST_P(RandomGraphs, OneGroupHasAll) {
  for (int i = 0; i < 50; ++i) {
    PolicyGraph graph = Next();
    for (PolicyNode& node : graph) node.group.reset();
    ASSERT_EQ(AssignGroups(GetParam(), graph, Options(1)),
              Groups(graph.size(), 0))
        << i;
  }
}

TEST(StreamPolicyTest, WithoutAPolicyFreeNodesAreInTheCallersGroup) {
  PolicyGraph graph = ForkJoin(3, 2, 10);
  graph[4].group = 3;
  Groups all_at_home(graph.size(), 2);
  all_at_home[4] = 3;
  EXPECT_EQ(AssignGroups(Policy::kNone, graph, Options(4, /*caller_group=*/2)),
            all_at_home);
}

//   lookup0 (5) -.
//   lookup1 (9) --.
//   lookup2 (7) --- concat --> DENSE        2 groups: 9 and 5 | 7
TEST(EmbeddingPolicyTest, TheCostliestGoFirstToTheGroupWithTheLeastToDo) {
  PolicyGraph graph;
  const int lookup0 = AddLookup(&graph, {}, 4);
  const int pool0 = Add(&graph, {lookup0}, 1);
  const int lookup1 = AddLookup(&graph, {}, 9);
  const int lookup2 = AddLookup(&graph, {}, 7);
  const int concat = Add(&graph, {pool0, lookup1, lookup2}, 100);
  AddDense(&graph, {concat}, 100);
  EXPECT_EQ(AssignGroups(Policy::kEmbedding, graph, Options(2)),
            (Groups{1, 1, 0, 1, 0, 0}));
  // With another caller's group, the costliest lookup goes there.
  EXPECT_EQ(
      AssignGroups(Policy::kEmbedding, graph, Options(3, /*caller_group=*/2)),
      (Groups{1, 1, 2, 0, 2, 2}));
}

TEST(EmbeddingPolicyTest, EqualOnesGoToTheCallersGroupAndThenToTheLowest) {
  PolicyGraph graph;
  for (int i = 0; i < 5; ++i) AddLookup(&graph);
  EXPECT_EQ(
      AssignGroups(Policy::kEmbedding, graph, Options(3, /*caller_group=*/1)),
      (Groups{1, 0, 2, 1, 0}));
}

//   lookup (3) -------------.
//                            concat --> DENSE      the lookup runs beside the
//   features --> DENSE (9) -'                      first layer
TEST(EmbeddingPolicyTest, WhatRunsBesideTheLookupsCounts) {
  PolicyGraph graph;
  const int lookup = AddLookup(&graph, {}, 3);
  const int dense = AddDense(&graph, {}, 9);
  AddDense(&graph, {Add(&graph, {lookup, dense})});
  EXPECT_EQ(AssignGroups(Policy::kEmbedding, graph, Options(2)),
            (Groups{1, 0, 0, 0}));
  graph[dense].group = 1;
  EXPECT_EQ(AssignGroups(Policy::kEmbedding, graph, Options(2)),
            (Groups{0, 1, 0, 0}));
}

//   lookup* --> pool        the lookup is bound to group 2
TEST(EmbeddingPolicyTest, AClusterGoesWithItsFixedLookup) {
  PolicyGraph graph;
  const int lookup = AddLookup(&graph, {}, 9, /*group=*/2);
  Add(&graph, {lookup});
  AddLookup(&graph, {});
  AddLookup(&graph, {});
  AddLookup(&graph, {});
  EXPECT_EQ(AssignGroups(Policy::kEmbedding, graph, Options(3)),
            (Groups{2, 2, 0, 1, 0}));
}

//     .-> b --.
//   a          > d       each branch its own group
//     '-> c --'
TEST(FullGraphPolicyTest, BranchesAreApart) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a}, 2);
  const int c = Add(&graph, {a}, 1);
  Add(&graph, {b, c});
  EXPECT_EQ(AssignGroups(Policy::kFullGraph, graph, Options(4)),
            (Groups{0, 0, 1, 0}));
}

// The estimate of a step without a policy: all in the caller's group.
double CallerGroupUs(const PolicyGraph& graph, const PolicyOptions& options) {
  return EstimateStep(graph, AssignGroups(Policy::kNone, graph, options),
                      options)
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
    const PolicyOptions options = Options(4, i % 4, /*wait_us=*/i % 5 * 3);
    const Groups groups = AssignGroups(Policy::kCost, graph, options);
    if (groups == AssignGroups(Policy::kNone, graph, options)) continue;
    ++splits;
    ASSERT_LT(EstimateStep(graph, groups, options).step_us,
              0.95 * CallerGroupUs(graph, options))
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
    const int lookup = AddLookup(&graph, {ids.back()}, cost_us(20));
    pools.push_back(Add(&graph, {lookup}, cost_us(5)));
  }
  int last = Add(&graph, pools, 3);
  for (int i = 0; i < 4; ++i) last = AddDense(&graph, {last}, 10);
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
    const PolicyOptions options = Options(2 + i % 4, 0, /*wait_us=*/i % 7);
    const Groups groups = AssignGroups(Policy::kCost, graph, options);
    const double ours = EstimateStep(graph, groups, options).step_us;
    const bool split = GroupsIn(groups) > 1;
    for (Policy other : {Policy::kEmbedding, Policy::kFullGraph}) {
      const double theirs =
          EstimateStep(graph, AssignGroups(other, graph, options), options)
              .step_us;
      ASSERT_GE(theirs, split ? ours / 1.02 : 0.95 * ours) << i;
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
  const PolicyOptions options = Options(2, 0, /*wait_us=*/5);
  const StepEstimate ours =
      EstimateStep(graph, AssignGroups(Policy::kCost, graph, options), options);
  for (const Groups& placed :
       {AssignGroups(Policy::kFullGraph, graph, options),
        ListSchedule(graph, options, {0, 1}, /*wait_weight=*/1),
        ListSchedule(graph, options, {0, 1}, /*wait_weight=*/3)}) {
    const StepEstimate before = EstimateStep(graph, placed, options);
    EXPECT_LT(ours.step_us, 0.99 * before.step_us);
    EXPECT_LT(ours.waits, before.waits);
  }
}

TEST(CostPolicyTest, LongBranchesTakeNearlyTheirShareOfTheTime) {
  for (int group_count : {2, 4, 8}) {
    for (int branches : {group_count, 2 * group_count, 20}) {
      const PolicyGraph graph = ForkJoin(branches, /*length=*/40, 10);
      const PolicyOptions options = Options(group_count, 0, /*wait_us=*/5);
      const Groups groups = AssignGroups(Policy::kCost, graph, options);
      const double ideal = branches * 400.0 / group_count;
      EXPECT_LT(EstimateStep(graph, groups, options).step_us, 1.15 * ideal)
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
    const PolicyOptions options = Options(3, 0, /*wait_us=*/1);
    double best = CallerGroupUs(graph, options);
    ForAllAssignments(drawn.nodes, 3, [&](const Groups& groups) {
      best = std::min(best, EstimateStep(graph, groups, options).step_us);
    });
    const double ours =
        EstimateStep(graph, AssignGroups(Policy::kCost, graph, options),
                     options)
            .step_us;
    ASSERT_GE(ours, best - 1e-9) << i;
    ratios += best == 0 ? 1 : ours / best;
  }
  EXPECT_LT(ratios / kGraphs, 1.02);
}

TEST(CostPolicyTest, AChainStaysTogether) {
  for (int caller_group : {0, 3}) {
    const PolicyGraph graph = ForkJoin(/*branches=*/1, /*length=*/50, 10);
    EXPECT_EQ(AssignGroups(Policy::kCost, graph, Options(4, caller_group)),
              Groups(graph.size(), caller_group));
  }
}

TEST(CostPolicyTest, WhereWaitsCostMoreThanBranchesAllStaysInOneGroup) {
  const PolicyGraph graph = ForkJoin(/*branches=*/4, /*length=*/5, 10);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kCost, graph, Options(4, 0, 5))), 4);
  EXPECT_EQ(AssignGroups(Policy::kCost, graph, Options(4, 2, 200)),
            Groups(graph.size(), 2));
}

//   a (100) beside b        b of 4 us saves less than 5 percent of the step
TEST(CostPolicyTest, AGainOfLessThanAMarginIsNoReasonToSplit) {
  PolicyGraph graph;
  Add(&graph, {}, 100);
  Add(&graph, {}, 4);
  const PolicyOptions options = Options(2, 0, /*wait_us=*/0.01);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kCost, graph, options)), 1);
  graph[1].cost_us = 10;
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kCost, graph, options)), 2);
}

// Two branches of 400 us, and 6 nodes of half a microsecond beside them: less
// than 2 percent for four groups more.
TEST(CostPolicyTest, FewerGroupsAreTakenIfTheyAreNearlyAsFast) {
  PolicyGraph graph = ForkJoin(/*branches=*/2, /*length=*/40, 10);
  for (int i = 0; i < 6; ++i) Add(&graph, {}, 0.5);
  const PolicyOptions options = Options(8, 0, /*wait_us=*/0);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kFullGraph, graph, options)), 8);
  EXPECT_EQ(GroupsIn(AssignGroups(Policy::kCost, graph, options)), 2);
}

// Prints the time and checks nothing: machines differ.
TEST(StreamPolicySpeedTest, TwentyThousandNodes) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.nodes = 20000;
  drawn.farthest_input = 500;
  drawn.most_inputs = 2;
  drawn.lookups = 0.005;
  const PolicyGraph graph = RandomGraph(drawn, &random);
  const PolicyOptions options = Options(8, 0, /*wait_us=*/5);
  const char* const names[] = {"none", "embedding", "full graph", "cost"};
  for (int i = 0; i < 4; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Groups groups = AssignGroups(kPolicies[i], graph, options);
    const std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    const StepEstimate estimate = EstimateStep(graph, groups, options);
    std::cout << names[i] << ": " << took.count() << " s, step "
              << estimate.step_us << " of " << estimate.one_stream_us << " us, "
              << estimate.waits << " waits, " << estimate.groups_used
              << " groups\n";
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
