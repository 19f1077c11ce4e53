// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

using Groups = std::vector<int>;

PolicyOptions Options(int group_count, int caller_group = 0) {
  PolicyOptions options;
  options.group_count = group_count;
  options.caller_group = caller_group;
  return options;
}

// Whether some two nodes of one group might run at the same time.
bool LosesConcurrency(const std::vector<std::vector<bool>>& paths,
                      const Groups& groups) {
  for (size_t a = 0; a < groups.size(); ++a) {
    for (size_t b = a + 1; b < groups.size(); ++b) {
      if (groups[a] == groups[b] && !paths[a][b]) return true;
    }
  }
  return false;
}

int EdgesBetweenGroups(const std::vector<std::pair<int, int>>& edges,
                       const Groups& groups) {
  return static_cast<int>(
      std::count_if(edges.begin(), edges.end(), [&](const auto& edge) {
        return groups[edge.first] != groups[edge.second];
      }));
}

//     .-> b (1) ----.
//   a --> c (5) -----> e       longest path: a c e
//     '-> d (1) ----'
TEST(ChainSpreadTest, BranchesAreApartAndTheLongestIsInTheCallersGroup) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a});
  const int c = Add(&graph, {a}, /*cost_us=*/5);
  const int d = Add(&graph, {a});
  Add(&graph, {b, c, d});
  EXPECT_EQ(SpreadChains(graph, Options(3)), (Groups{0, 1, 0, 2, 0}));
  EXPECT_EQ(SpreadChains(graph, Options(3, /*caller_group=*/1)),
            (Groups{1, 0, 1, 2, 1}));
}

//     .-> b --.   .-> e --.
//   a          > d         > g       e never runs beside b: the same group
//     '-> c --'   '-> f --'
TEST(ChainSpreadTest, ChainsThatFollowEachOtherShareAGroup) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a}, /*cost_us=*/1);
  const int c = Add(&graph, {a}, /*cost_us=*/2);
  const int d = Add(&graph, {b, c});
  const int e = Add(&graph, {d}, /*cost_us=*/1);
  const int f = Add(&graph, {d}, /*cost_us=*/2);
  Add(&graph, {e, f});
  EXPECT_EQ(SpreadChains(graph, Options(8)), (Groups{0, 1, 0, 0, 1, 0, 0}));
}

TEST(ChainSpreadTest, MoreBranchesThanGroupsAreSharedOutEvenly) {
  const PolicyGraph graph = ForkJoin(/*branches=*/12, /*length=*/5, 10);
  const Groups groups = SpreadChains(graph, Options(4));
  std::vector<int> of_group(4);
  for (int group : groups) ++of_group[group];
  // The root and the end share the group of the longest branch.
  EXPECT_EQ(of_group, (std::vector<int>{17, 15, 15, 15}));
}

//   a (1), b (2), c (9), d (8): no edges. Each goes where there is time first.
TEST(ChainSpreadTest, OfEqualStartTheCostliestGoFirst) {
  PolicyGraph graph;
  Add(&graph, {}, 1);
  Add(&graph, {}, 2);
  Add(&graph, {}, 9);
  Add(&graph, {}, 8);
  EXPECT_EQ(SpreadChains(graph, Options(2)), (Groups{0, 1, 0, 1}));
}

//   a --> b* --> c --> d*        b is bound to group 2, d to group 1.
TEST(ChainSpreadTest, AChainFollowsItsFixedNodes) {
  PolicyGraph graph;
  const int a = Add(&graph);
  const int b = Add(&graph, {a}, 1, /*group=*/2);
  const int c = Add(&graph, {b});
  const int d = Add(&graph, {c}, 1, /*group=*/1);
  Add(&graph, {d});
  EXPECT_EQ(SpreadChains(graph, Options(4)), (Groups{2, 2, 2, 1, 1}));
}

//   a* (9) --> c*       a is bound to group 1 and c to 2: the chain is b c,
//   b (1) -----^        though a c is the longer path.
TEST(ChainSpreadTest, NoMatchIsWastedBetweenNodesOfDifferentFixedGroups) {
  PolicyGraph graph;
  const int a = Add(&graph, {}, /*cost_us=*/9, /*group=*/1);
  const int b = Add(&graph, {}, /*cost_us=*/1);
  Add(&graph, {a, b}, /*cost_us=*/1, /*group=*/2);
  EXPECT_EQ(SpreadChains(graph, Options(4)), (Groups{1, 2, 2}));
}

//   a* --> b*       a is bound to group 0 and b to 1, which is free before
//   c               b, but not for c
TEST(ChainSpreadTest, FreeChainsKeepOutOfTheWayOfFixedNodes) {
  PolicyGraph graph;
  const int a = Add(&graph, {}, /*cost_us=*/5, /*group=*/0);
  Add(&graph, {a}, /*cost_us=*/5, /*group=*/1);
  Add(&graph, {}, /*cost_us=*/4);
  EXPECT_EQ(SpreadChains(graph, Options(3)), (Groups{0, 1, 2}));
}

TEST(ChainSpreadTest, WithEnoughGroupsAllConcurrencyIsKeptWithTheFewestWaits) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  for (int i = 0; i < 300; ++i) {
    drawn.nodes = 1 + i % 6;
    drawn.farthest_input = 2 + i % 5;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const std::vector<std::vector<bool>> paths = AllPaths(graph);
    const std::vector<std::pair<int, int>> edges = NeededEdges(graph);
    const Groups groups =
        SpreadChains(graph, Options(drawn.nodes, i % drawn.nodes));
    ASSERT_FALSE(LosesConcurrency(paths, groups)) << i;
    int fewest = 1000;
    ForAllAssignments(drawn.nodes, drawn.nodes, [&](const Groups& other) {
      const int between = EdgesBetweenGroups(edges, other);
      if (between < fewest && !LosesConcurrency(paths, other)) {
        fewest = between;
      }
    });
    ASSERT_EQ(EdgesBetweenGroups(edges, groups), fewest) << i;
  }
}

TEST(ChainSpreadTest, WithEnoughGroupsLargeRandomGraphsKeepAllConcurrency) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.nodes = 150;
  for (int i = 0; i < 40; ++i) {
    drawn.farthest_input = 1 + 4 * i;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    ASSERT_FALSE(LosesConcurrency(AllPaths(graph),
                                  SpreadChains(graph, Options(drawn.nodes))))
        << i;
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
