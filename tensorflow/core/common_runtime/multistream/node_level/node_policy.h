// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups do the nodes of a TensorFlow graph get from a policy? The node
// plan asks. Makes a PolicyGraph of what is launched on streams, and puts the
// rest beside it:
//
//   W --> ReadVariableOp --> MatMul ---> Reshape --> Tanh
//         (no work of its    (policy)    (MatMul's   (policy)
//         own: MatMul's)                 group)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_

#include <functional>
#include <optional>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/policy.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// What the policies must know of a node.
struct NodeForPolicy {
  // Launched nodes that it must come after, by id.
  std::vector<int> before;
  // False: nothing of it is on a stream.
  bool launched = false;
  // All its outputs are in host memory.
  bool on_host = false;
  // The group that it has anyway.
  std::optional<int> group;
};

struct NodePolicyOptions {
  Policy policy = Policy::kNone;
  // It uses the first so many groups, and those up to `caller_group`, the
  // caller's, and the last one that a node has anyway.
  int groups = 1;
  int caller_group = 0;
  // Time that a node takes of a group, in microseconds, where it is known; may
  // be empty.
  std::function<std::optional<double>(const Node&)> cost_us;
  // What a wait between groups costs.
  double wait_us = PolicyOptions().wait_us;
};

// `order` has the nodes of the graph, each after what it needs; `nodes` is by
// id. By id: the groups of nodes that had none. nullopt for those that stay
// with the caller: what is not launched, and what may be dead or be run many
// times, being in a branch or loop of control flow.
std::vector<std::optional<int>> GroupsByPolicy(
    const Graph& graph, const std::vector<Node*>& order,
    const std::vector<NodeForPolicy>& nodes, const NodePolicyOptions& options);

// Whether the node looks rows of a table up: the embedding policy spreads
// these.
bool IsEmbeddingLookup(const Node& node);

// Nodes of these types hand their inputs on, or a variable, and mostly launch
// nothing.
bool HandsOnOnly(const Node& node);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_H_
