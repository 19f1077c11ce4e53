// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
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

}  // namespace
}  // namespace tensorflow::multistream
