// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/embedding_clusters.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kNone = -1;

// A recommender's training step: lookups and, if there is one, a bottom layer
// beside them, one dense layer, and all gradients.
//
//   ids -> prepare -> lookup -> pool ---.
//                                        concat -> top -> loss -> top_grad
//   features -> bottom ------- relu ----'                             |
//                                                                   split
//       .-- slice -> grad -> update (on group 0)                   /  |
//   ids -----------^                     slice ... <--------------'   |
//                                        relu_grad -> bottom_grad <---'
struct Recommender {
  struct Embedding {
    int ids, prepare, lookup, pool, slice, grad;
  };

  Recommender(int lookups, bool has_bottom) {
    for (int i = 0; i < lookups; ++i) {
      Embedding e;
      e.ids = Add(&graph);
      e.prepare = Add(&graph, {e.ids});
      e.lookup = AddLookup(&graph, {e.prepare});
      e.pool = Add(&graph, {e.lookup, Add(&graph) /* a weight of each id */});
      embeddings.push_back(e);
    }
    std::vector<int> to_concat;
    for (const Embedding& e : embeddings) to_concat.push_back(e.pool);
    features = Add(&graph);
    if (has_bottom) {
      bottom = AddDense(&graph, {features});
      relu = Add(&graph, {bottom});
      to_concat.push_back(relu);
    } else {
      to_concat.push_back(features);
    }
    concat = Add(&graph, to_concat);
    top = AddDense(&graph, {concat});
    loss = Add(&graph, {top});
    top_grad = AddDense(&graph, {loss});
    split = Add(&graph, {top_grad});
    if (has_bottom) {
      relu_grad = Add(&graph, {split, relu});
      bottom_grad = AddDense(&graph, {relu_grad, features});
    }
    for (Embedding& e : embeddings) {
      e.slice = Add(&graph, {split});
      e.grad = Add(&graph, {e.slice, e.ids});
      Add(&graph, {e.grad}, 1, /*group=*/0);
    }
  }

  PolicyGraph graph;
  std::vector<Embedding> embeddings;
  int features, bottom = kNone, relu = kNone, concat, top, loss, top_grad,
                split, relu_grad = kNone, bottom_grad = kNone;
};

void ExpectLookupsAndGradientsApart(const Recommender& model,
                                    const EmbeddingClusters& found) {
  ASSERT_EQ(found.count, static_cast<int>(model.embeddings.size()));
  for (int i = 0; i < found.count; ++i) {
    const Recommender::Embedding& e = model.embeddings[i];
    for (int node : {e.ids, e.prepare, e.lookup, e.pool, e.slice, e.grad}) {
      EXPECT_EQ(found.cluster_of[node], i) << node;
    }
  }
  for (int node : {model.top, model.loss, model.top_grad, model.bottom,
                   model.bottom_grad, model.relu_grad}) {
    if (node == kNone) continue;
    EXPECT_EQ(found.cluster_of[node], kNone) << node;
  }
}

TEST(EmbeddingClustersTest, ALookupHasItsIdsItsPoolingAndItsGradient) {
  const Recommender model(/*lookups=*/3, /*has_bottom=*/true);
  const EmbeddingClusters found = FindEmbeddingClusters(model.graph);
  ExpectLookupsAndGradientsApart(model, found);
  for (int node : {model.features, model.relu, model.concat, model.split}) {
    EXPECT_EQ(found.cluster_of[node], kNone) << node;
  }
  EXPECT_FALSE(found.after_lookup[model.relu]);
  EXPECT_TRUE(found.after_lookup[model.embeddings[0].lookup]);
  EXPECT_TRUE(found.after_lookup[model.concat]);
}

TEST(EmbeddingClustersTest, OneLookupDoesNotSwallowTheDensePart) {
  for (bool has_bottom : {true, false}) {
    const Recommender model(/*lookups=*/1, has_bottom);
    ExpectLookupsAndGradientsApart(model, FindEmbeddingClusters(model.graph));
  }
}

TEST(EmbeddingClustersTest, SeveralLookupsWithoutABottomDoNotEither) {
  const Recommender model(/*lookups=*/2, /*has_bottom=*/false);
  ExpectLookupsAndGradientsApart(model, FindEmbeddingClusters(model.graph));
}

//   lookup0 -> DENSE -> DENSE --.
//   lookup1 -> wide ------------ add -> loss -> DENSE (gradient)
TEST(EmbeddingClustersTest, WhatAddsToTheDensePartIsNotTheLookups) {
  PolicyGraph graph;
  const int lookup0 = AddLookup(&graph);
  const int lookup1 = AddLookup(&graph);
  const int deep = AddDense(&graph, {AddDense(&graph, {lookup0})});
  const int wide = Add(&graph, {lookup1});
  const int add = Add(&graph, {deep, wide});
  const int loss = Add(&graph, {add});
  AddDense(&graph, {loss});
  const int wide_grad = Add(&graph, {loss, wide});
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  EXPECT_EQ(found.cluster_of[wide], 1);
  EXPECT_EQ(found.cluster_of[add], kNone);
  EXPECT_EQ(found.cluster_of[loss], kNone);
  EXPECT_EQ(found.cluster_of[wide_grad], 1);
}

//   lookup -> DENSE -> add -> DENSE
//        `-------------^
TEST(EmbeddingClustersTest, AShortCutIntoTheDensePartIsNotTheLookups) {
  PolicyGraph graph;
  const int lookup = AddLookup(&graph);
  const int add = Add(&graph, {AddDense(&graph, {lookup}), lookup});
  AddDense(&graph, {add});
  EXPECT_EQ(FindEmbeddingClusters(graph).cluster_of[add], kNone);
}

//   loss --> grad0 (ids0) -> norm0 --.          scale needs both clusters, and
//       `--> grad1 (ids1) -> norm1 -- scale     a clipped gradient is of one.
//            grad0 --> clip0 <----------'
TEST(EmbeddingClustersTest, ClippedGradientsStayWithTheirLookups) {
  PolicyGraph graph;
  const int ids[] = {Add(&graph), Add(&graph)};
  const int lookups[] = {AddLookup(&graph, {ids[0]}),
                         AddLookup(&graph, {ids[1]})};
  const int loss = AddDense(&graph, {lookups[0], lookups[1]});
  const int grads[] = {Add(&graph, {loss, ids[0]}),
                       Add(&graph, {loss, ids[1]})};
  const int norms[] = {Add(&graph, {grads[0]}), Add(&graph, {grads[1]})};
  const int scale = Add(&graph, {norms[0], norms[1]});
  const int clips[] = {Add(&graph, {grads[0], scale}),
                       Add(&graph, {grads[1], scale})};
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  for (int i : {0, 1}) {
    EXPECT_EQ(found.cluster_of[grads[i]], i);
    EXPECT_EQ(found.cluster_of[norms[i]], i);
    EXPECT_EQ(found.cluster_of[clips[i]], i);
  }
  EXPECT_EQ(found.cluster_of[scale], kNone);
}

//   ids --> prepare --> lookup0        ids and prepare are in no cluster.
//                  `--> lookup1
TEST(EmbeddingClustersTest, LookupsThatShareTheirIdsStayApart) {
  PolicyGraph graph;
  const int ids = Add(&graph);
  const int prepare = Add(&graph, {ids});
  const int lookup0 = AddLookup(&graph, {prepare});
  const int lookup1 = AddLookup(&graph, {prepare});
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  EXPECT_EQ(found.cluster_of[ids], kNone);
  EXPECT_EQ(found.cluster_of[prepare], kNone);
  EXPECT_EQ(found.cluster_of[lookup0], 0);
  EXPECT_EQ(found.cluster_of[lookup1], 1);
}

//   feature --> bucket --> lookup -----.
//          `--> scale  ---------------- concat
TEST(EmbeddingClustersTest, WhatIsNotForTheLookupAloneIsNotTheLookups) {
  PolicyGraph graph;
  const int feature = Add(&graph);
  const int bucket = Add(&graph, {feature});
  const int lookup = AddLookup(&graph, {bucket});
  const int scale = Add(&graph, {feature});
  AddDense(&graph, {lookup, scale});
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  EXPECT_EQ(found.cluster_of[bucket], 0);
  EXPECT_EQ(found.cluster_of[feature], kNone);
  EXPECT_EQ(found.cluster_of[scale], kNone);
}

//   lookup0 --> ids (of another table) --> lookup1
TEST(EmbeddingClustersTest, ALookupAfterALookupIsItsOwn) {
  PolicyGraph graph;
  const int lookup0 = AddLookup(&graph);
  const int lookup1 = AddLookup(&graph, {Add(&graph, {lookup0})});
  const int pool = Add(&graph, {lookup1});
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  EXPECT_EQ(found.cluster_of, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(found.cluster_of[pool], 1);
}

TEST(EmbeddingClustersTest, ANodeWithAFixedGroupIsInNoClusterUnlessALookup) {
  PolicyGraph graph;
  const int lookup = AddLookup(&graph, {}, 1, /*group=*/2);
  const int fixed = Add(&graph, {lookup}, 1, /*group=*/1);
  const int after_fixed = Add(&graph, {fixed});
  const int pool = Add(&graph, {lookup, fixed});
  const EmbeddingClusters found = FindEmbeddingClusters(graph);
  EXPECT_EQ(found.cluster_of[lookup], 0);
  EXPECT_EQ(found.cluster_of[fixed], kNone);
  EXPECT_EQ(found.cluster_of[after_fixed], kNone);
  EXPECT_EQ(found.cluster_of[pool], 0);
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
}  // namespace multistream
}  // namespace tensorflow
