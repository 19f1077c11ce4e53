// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group does a policy give each node of a graph? Pure graph code:
// no TensorFlow graph in it.
//
//               lookup0 --.              kNone        all in the caller's group
//   a --> b                concat --> c  kEmbedding   the lookups apart
//          \    lookup1 --'          /   kFullGraph   branches apart
//           '-- d ------------------'    kCost        apart where it is faster

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STREAM_POLICY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STREAM_POLICY_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// A group for each node, in [0, group_count). Deterministic. A policy never
// changes a fixed group.
std::vector<int> AssignGroups(Policy policy, const PolicyGraph& graph,
                              const PolicyOptions& options);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STREAM_POLICY_H_
