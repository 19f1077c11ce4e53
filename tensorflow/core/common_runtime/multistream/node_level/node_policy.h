// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups do the nodes of a TensorFlow graph get from a policy? The node
// plan asks. Nodes that launch work form a PolicyGraph; pass-through ops and
// ops on the host get a neighbour's group:
//
//   W --> ReadVariableOp --> MatMul ---> Reshape --> Tanh
//         (no work of its    (policy)    (MatMul's   (policy)
//         own: MatMul's)                 group)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_

#include <optional>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// What the policies must know of a node.
struct NodeForPolicy {
  // Ids of the launched nodes that this node must come after.
  std::vector<int> before;
  // False: the node puts nothing on a stream.
  bool launched = false;
  // All outputs are in host memory.
  bool on_host = false;
  // The node's group, if it is fixed whatever the policy.
  std::optional<int> group;
};

// `order`: the ops in topological order. `nodes` and the result are by id. The
// policy uses at least the groups below `groups`: more if the caller's group or
// a node's fixed group is higher. Returns the groups of nodes that had none.
// nullopt for nodes that stay with the caller: nodes that are not launched, and
// nodes that may be dead or run many times, as they are in a branch or loop of
// control flow.
std::vector<std::optional<int>> GroupsByPolicy(
    const Graph& graph, const std::vector<Node*>& order,
    const std::vector<NodeForPolicy>& nodes, Policy policy, int groups,
    const NodePlanOptions& options);

// Whether the node looks up rows of a table. The embedding policy spreads
// lookups over the groups.
bool IsEmbeddingLookup(const Node& node);

// Whether the node is a pass-through op: hands on an input or a variable, and
// mostly launches nothing.
bool HandsOnOnly(const Node& node);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_
