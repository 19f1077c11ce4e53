// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes belong to which embedding lookup?
//
// Each lookup starts a cluster, which takes in, of the free nodes,
//   1. what prepares the lookup's ids and nothing else: it leads to no other
//      lookup, and what else needs it comes after the lookup (its gradient),
//   2. what takes something of this cluster and of no other: pooling, and the
//      gradient, which takes the ids or a shape,
//   3. what only this cluster needs: the gradient's slice.
// Inputs in no cluster count as nothing. What leads to two lookups, and what
// takes something of two clusters, is in none.
//
// By 2, a node that adds one cluster's output to the dense part's, and all that
// comes after it, would be the cluster's: with one lookup, the whole model. So
// the dense part is in no cluster: the dense nodes and what lies between two of
// them. A lookup's gradient comes after it and leads to no dense node.
//
//   cluster 0   ids0 -> LOOKUP -> pool --.            .--> gradient (with ids0)
//   none                                  concat -> DENSE
//   cluster 1   ids1 -> LOOKUP -> pool --'            '--> gradient (with ids1)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow {
namespace multistream {

struct EmbeddingClusters {
  // The cluster of each node, or -1. Of nodes with a fixed group only lookups
  // are in one. Clusters are numbered as their lookups come.
  std::vector<int> cluster_of;
  int count = 0;
  // Whether each node comes after a lookup, or is one.
  std::vector<bool> after_lookup;
};

EmbeddingClusters FindEmbeddingClusters(const PolicyGraph& graph);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_
