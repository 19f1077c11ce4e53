// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow::multistream {
namespace {

// The chains, with nodes' costs as weights.
std::string Cover(const std::string& drawing) {
  const DrawnGraph drawn(drawing);
  std::vector<double> weight;
  for (const PolicyNode& node : drawn.graph) weight.push_back(node.cost_us);
  std::vector<std::string> chains;
  for (const Chain& chain : CoverWithChains(InputsOf(drawn.graph), weight)) {
    chains.emplace_back();
    for (int node : chain) chains.back() += drawn.names[node];
  }
  return absl::StrJoin(chains, " ");
}

TEST(ReducedGraphTest, HasThePathsOfRandomGraphsAndNoEdgeTooMany) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.most_inputs = 4;
  for (int i = 0; i < 300; ++i) {
    // Words have 64 bits.
    drawn.nodes = i % 150;
    drawn.farthest_input = 1 + i % 70;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const ReducedGraph reduced(InputsOf(graph));
    const std::vector<std::vector<bool>> paths = AllPaths(graph);
    NodeLists needed(graph.size());
    for (const auto& [from, to] : NeededEdges(graph)) {
      needed[to].push_back(from);
    }
    ASSERT_EQ(reduced.inputs(), needed) << i;
    for (int from = 0; from < drawn.nodes; ++from) {
      for (int to = 0; to < drawn.nodes; ++to) {
        ASSERT_EQ(reduced.Reaches(from, to), paths[from][to])
            << i << ": " << from << " to " << to;
      }
    }
  }
}

TEST(ReducedGraphTest, KeepsAllEdgesOfAGraphThatIsTooLarge) {
  PolicyGraph graph;
  for (int i = 0; i <= ReducedGraph::kMostNodes; ++i) Add(&graph);
  graph[1].inputs = {0};
  graph[2].inputs = {0, 1};
  const NodeLists inputs = InputsOf(graph);
  EXPECT_EQ(ReducedGraph(inputs).inputs(), inputs);
  EXPECT_FALSE(ReducedGraph(inputs).Reaches(0, 1));
  graph.pop_back();
  EXPECT_EQ(ReducedGraph(InputsOf(graph)).inputs()[2], std::vector<int>{1});
}

TEST(ChainCoverTest, BranchesAreChains) {
  EXPECT_EQ(Cover("a -> b c; b -> d; c -> e; d e -> f"), "abdf ce");
}

// If a took c, b would be alone: a must go on with d.
TEST(ChainCoverTest, AChainMakesWayIfThatMakesFewerChains) {
  EXPECT_EQ(Cover("a b -> c(9); a -> d"), "ad bc");
}

TEST(ChainCoverTest, WhereThereIsAChoiceTheHeaviestFollowEachOther) {
  EXPECT_EQ(Cover("a(9) -> b c(9) d -> e(9)"), "ace b d");
}

// The most edges of which no two begin, and no two end, at the same node.
int LargestMatching(const NodeLists& inputs, size_t node, unsigned used) {
  if (node == inputs.size()) return 0;
  int most = LargestMatching(inputs, node + 1, used);
  for (int input : inputs[node]) {
    if (used >> input & 1) continue;
    most = std::max(most,
                    1 + LargestMatching(inputs, node + 1, used | 1u << input));
  }
  return most;
}

TEST(ChainCoverTest, RandomGraphsAreCoveredByAsFewChainsAsPossible) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  for (int i = 0; i < 5000; ++i) {
    drawn.nodes = i % 9;
    drawn.farthest_input = 2 + i % 7;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    NodeLists inputs = InputsOf(graph);
    if (i % 2 == 0) inputs = ReducedGraph(inputs).inputs();
    const std::vector<Chain> chains =
        CoverWithChains(inputs, std::vector<double>(graph.size()));
    std::vector<int> seen(graph.size());
    for (const Chain& chain : chains) {
      for (size_t j = 0; j < chain.size(); ++j) {
        ++seen[chain[j]];
        if (j == 0) continue;
        const std::vector<int>& of = inputs[chain[j]];
        ASSERT_TRUE(std::count(of.begin(), of.end(), chain[j - 1])) << i;
      }
    }
    ASSERT_EQ(seen, std::vector<int>(graph.size(), 1)) << i;
    const int matched = static_cast<int>(graph.size() - chains.size());
    ASSERT_EQ(matched, LargestMatching(inputs, 0, 0)) << i;
  }
}

// An augmenting path as long as the graph must not need a stack as deep:
//
//   a0   a1   a2 ...     Node a(i) takes b(i) first, until the last one, which
//   |  \ |  \ |          has b(0) alone, wants it: all move on by one.
//   b0   b1   b2
TEST(ChainCoverTest, AllNodesMayMakeWayForOne) {
  constexpr int kPairs = 50000;
  NodeLists inputs(2 * kPairs + 2);
  for (int i = 0; i <= kPairs; ++i) {
    inputs[kPairs + 1 + i].push_back(i);
    if (i > 0) inputs[kPairs + 1 + i].push_back(i - 1);
  }
  inputs[kPairs + 1 + kPairs].pop_back();
  inputs[kPairs + 1 + kPairs] = {kPairs - 1};
  inputs[kPairs + 1].push_back(kPairs);
  std::vector<double> weight(inputs.size());
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = -1.0 * i;
  EXPECT_EQ(CoverWithChains(inputs, weight).size(), kPairs + 1);
}

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
