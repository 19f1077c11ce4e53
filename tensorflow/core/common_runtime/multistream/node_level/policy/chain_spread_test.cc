// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow::multistream {
namespace {

using Groups = std::vector<int>;

std::string Spread(const std::string& drawing, int group_count,
                   int caller_group = 0) {
  const DrawnGraph drawn(drawing);
  return drawn.Say(
      SpreadChains(drawn.graph, OptionsOf(group_count, 5, caller_group)));
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

TEST(ChainSpreadTest, BranchesAreApartAndTheLongestIsInTheCallersGroup) {
  const std::string graph = "a -> b c(5) d -> e";
  EXPECT_EQ(Spread(graph, 3), "0: a c e; 1: b; 2: d");
  EXPECT_EQ(Spread(graph, 3, /*caller_group=*/1), "0: b; 1: a c e; 2: d");
}

// e never runs beside b: the same group.
TEST(ChainSpreadTest, ChainsThatFollowEachOtherShareAGroup) {
  EXPECT_EQ(Spread("a -> b c(2) -> d -> e f(2) -> g", 8),
            "0: a c d f g; 1: b e");
}

TEST(ChainSpreadTest, MoreBranchesThanGroupsAreSharedOutEvenly) {
  const PolicyGraph graph = ForkJoin(/*branches=*/12, /*length=*/5, 10);
  std::vector<int> of_group(4);
  for (int group : SpreadChains(graph, OptionsOf(4, 5))) ++of_group[group];
  // The root and the end share the group of the longest branch.
  EXPECT_EQ(of_group, (std::vector<int>{17, 15, 15, 15}));
}

// No edges. Each goes where there is time first.
TEST(ChainSpreadTest, OfEqualStartTheCostliestGoFirst) {
  EXPECT_EQ(Spread("a(1) b(2) c(9) d(8)", 2), "0: a c; 1: b d");
}

TEST(ChainSpreadTest, AChainFollowsItsFixedNodes) {
  EXPECT_EQ(Spread("a -> b@2 -> c -> d@1 -> e", 4), "1: d e; 2: a b c");
}

// The chain is b c, though a c is the longer path.
TEST(ChainSpreadTest, NoMatchIsWastedBetweenNodesOfDifferentFixedGroups) {
  EXPECT_EQ(Spread("a@1(9) b -> c@2", 4), "1: a; 2: b c");
}

// Group 1 is free before b, but not for c.
TEST(ChainSpreadTest, FreeChainsKeepOutOfTheWayOfFixedNodes) {
  EXPECT_EQ(Spread("a@0(5) -> b@1(5); c(4)", 3), "0: a; 1: b; 2: c");
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
        SpreadChains(graph, OptionsOf(drawn.nodes, 5, i % drawn.nodes));
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

}  // namespace
}  // namespace tensorflow::multistream
