// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/embedding_clusters.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow::multistream {
namespace {

constexpr int kNone = -1;

std::string Clusters(const std::string& drawing) {
  const DrawnGraph drawn(drawing);
  return drawn.Say(FindEmbeddingClusters(drawn.graph).cluster_of);
}

// A recommender's training step: lookups and, if there is one, a bottom layer
// beside them, one dense layer, and all gradients.
std::string Recommender(int lookups, bool has_bottom) {
  std::string graph;
  std::string pools;
  for (int i = 0; i < lookups; ++i) {
    absl::SubstituteAndAppend(&graph,
                              "ids$0 -> prepare$0 -> lookup$0(lookup)"
                              "; lookup$0 id_weights$0 -> pool$0; ",
                              i);
    absl::StrAppend(&pools, "pool", i, " ");
  }
  absl::StrAppend(
      &graph, "features",
      has_bottom ? " -> bottom(dense) -> relu; relu " : "; features ", pools,
      "-> concat -> top(dense) -> loss -> top_grad(dense) -> split; ",
      has_bottom ? "split relu -> relu_grad"
                   "; relu_grad features -> bottom_grad(dense); "
                 : "");
  for (int i = 0; i < lookups; ++i) {
    absl::SubstituteAndAppend(
        &graph, "split -> slice$0; slice$0 ids$0 -> grad$0 -> update$0@0; ", i);
  }
  return graph;
}

TEST(EmbeddingClustersTest, ALookupHasItsIdsItsPoolingAndItsGradient) {
  for (const auto& [lookups, has_bottom] : std::vector<std::pair<int, bool>>{
           {3, true}, {1, true}, {1, false}, {2, false}}) {
    std::vector<std::string> clusters;
    for (int i = 0; i < lookups; ++i) {
      clusters.push_back(absl::Substitute(
          "$0: ids$0 prepare$0 lookup$0 id_weights$0 pool$0$1 slice$0 grad$0",
          i,
          // Nothing else leads into the only dense layer.
          lookups == 1 && !has_bottom ? " features concat split" : ""));
    }
    const std::string model = Recommender(lookups, has_bottom);
    EXPECT_EQ(Clusters(model), absl::StrJoin(clusters, "; ")) << model;
  }
}

TEST(EmbeddingClustersTest, NodesAfterALookupAreKnown) {
  const DrawnGraph drawn("a -> b(lookup) -> c; d -> e; c e -> f");
  EXPECT_EQ(FindEmbeddingClusters(drawn.graph).after_lookup,
            (std::vector<bool>{false, true, true, false, false, true}));
}

TEST(EmbeddingClustersTest, WhatAddsToTheDensePartIsNotTheLookups) {
  EXPECT_EQ(Clusters("l0(lookup) -> d0(dense) -> d1(dense); l1(lookup) -> wide"
                     "; d1 wide -> add -> loss -> grad(dense)"
                     "; loss wide -> wide_grad"),
            "0: l0; 1: l1 wide wide_grad");
  // A short cut.
  EXPECT_EQ(Clusters("l(lookup) -> deep(dense); deep l -> add -> d(dense)"),
            "0: l");
}

// `scale` needs both clusters, and a clipped gradient is of one.
TEST(EmbeddingClustersTest, ClippedGradientsStayWithTheirLookups) {
  EXPECT_EQ(Clusters("ids0 -> l0(lookup); ids1 -> l1(lookup)"
                     "; l0 l1 -> loss(dense); loss ids0 -> grad0 -> norm0"
                     "; loss ids1 -> grad1 -> norm1; norm0 norm1 -> scale"
                     "; grad0 scale -> clip0; grad1 scale -> clip1"),
            "0: ids0 l0 grad0 norm0 clip0; 1: ids1 l1 grad1 norm1 clip1");
}

TEST(EmbeddingClustersTest, WhatIsNotForOneLookupAloneIsNotTheLookups) {
  EXPECT_EQ(Clusters("ids -> prepare -> l0(lookup) l1(lookup)"),
            "0: l0; 1: l1");
  EXPECT_EQ(Clusters("feature -> bucket scale; bucket -> l(lookup)"
                     "; l scale -> concat(dense)"),
            "0: bucket l");
}

TEST(EmbeddingClustersTest, ALookupAfterALookupIsItsOwn) {
  EXPECT_EQ(Clusters("l0(lookup) -> ids -> l1(lookup) -> pool"),
            "0: l0 ids; 1: l1 pool");
}

TEST(EmbeddingClustersTest, ANodeWithAFixedGroupIsInNoClusterUnlessALookup) {
  EXPECT_EQ(Clusters("l@2(lookup) -> fixed@1 -> after; l fixed -> pool"),
            "0: l pool");
}

TEST(EmbeddingClustersTest, NoNodeOfARandomGraphBetweenDenseNodesIsInACluster) {
  std::mt19937 random(1);
  RandomGraphOptions drawn;
  drawn.lookups = 0.2;
  drawn.dense = 0.2;
  for (int i = 0; i < 500; ++i) {
    drawn.nodes = i % 40;
    const PolicyGraph graph = RandomGraph(drawn, &random);
    const std::vector<std::vector<bool>> paths = AllPaths(graph);
    const EmbeddingClusters found = FindEmbeddingClusters(graph);
    for (int node = 0; node < drawn.nodes; ++node) {
      bool after = false;
      bool before = false;
      for (int other = 0; other < drawn.nodes; ++other) {
        after |= graph[other].dense && paths[other][node];
        before |= graph[other].dense && paths[node][other];
      }
      if (graph[node].dense || (after && before && !graph[node].lookup)) {
        ASSERT_EQ(found.cluster_of[node], kNone) << i << ": " << node;
      }
    }
  }
}

}  // namespace
}  // namespace tensorflow::multistream
