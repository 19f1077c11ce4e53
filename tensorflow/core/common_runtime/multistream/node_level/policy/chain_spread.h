// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group does each chain of a graph go to, if there are more chains
// (chain_cover.h) than groups?
//
// Chains are placed in the order in which they would start if each had a group
// of its own. A chain goes to the group that is free first, if possible to an
// empty one or one whose nodes all come before the chain.
//
//        b       e             chain   a c d f g    b    e
//      /   \   /   \           group   0            1    1
//    a       d       g
//      \   /   \   /           e never runs beside b.
//        c       f
//
// The chain with the most of the longest path stays in the caller's group. A
// chain goes where its fixed nodes are, and is cut between fixed nodes of
// different groups.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_SPREAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_SPREAD_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// A group for each node.
std::vector<int> SpreadChains(const PolicyGraph& graph,
                              const PolicyOptions& options);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_CHAIN_SPREAD_H_
