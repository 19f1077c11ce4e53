// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes belong to which embedding lookup?
//
// Each lookup starts a cluster. A free node joins a cluster
//   1. if it only prepares the lookup's ids: it leads to no other lookup, and
//      its other consumers come after the lookup (the gradient),
//   2. if it has inputs from this cluster and from no other: pooling, and the
//      gradient, which takes the ids or a shape,
//   3. if all its consumers are in the cluster: the gradient's slice.
// Inputs in no cluster are ignored. A node that leads to two lookups, or has
// inputs from two clusters, is in no cluster.
//
// By rule 2 alone, a node that adds a cluster's output to the dense part's, and
// all that follows, would join the cluster: with one lookup, the whole model.
// So the dense part (dense nodes and nodes between two of them) is in no
// cluster. A lookup's gradient comes after that, but leads to no dense node.
//
//   cluster 0   ids0 -> LOOKUP -> pool --.            .--> gradient (with ids0)
//   none                                  concat -> DENSE
//   cluster 1   ids1 -> LOOKUP -> pool --'            '--> gradient (with ids1)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

struct EmbeddingClusters {
  // The cluster of each node, or -1. Nodes with a fixed group are in none,
  // except lookups. Clusters are numbered in the order of their lookups.
  std::vector<int> cluster_of;
  int count = 0;
  // Whether each node is a lookup or comes after one.
  std::vector<bool> after_lookup;
};

EmbeddingClusters FindEmbeddingClusters(const PolicyGraph& graph);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_EMBEDDING_CLUSTERS_H_
