// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a policy, which gives nodes to stream groups, know of a graph? Pure
// graph code: no TensorFlow graph in it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_

#include <optional>
#include <vector>

namespace tensorflow {
namespace multistream {

struct PolicyNode {
  // Numbers of nodes that it must come after. They are lower than its own;
  // duplicates are allowed. Constants and host values, which no stream waits
  // for, should not be among them.
  std::vector<int> inputs;
  // The group that the node has whatever the policy: its user's, or one that it
  // is bound to. In [0, group_count). A node without is *free*.
  std::optional<int> group;
  // Time it takes of a group: launching or running, whichever is longer. Not
  // negative.
  double cost_us = 1;
  // An embedding lookup.
  bool lookup = false;
  // A matrix product or a convolution, forward or gradient: the dense part of a
  // model, where an embedding ends.
  bool dense = false;
};

// Node i has number i.
using PolicyGraph = std::vector<PolicyNode>;

struct PolicyOptions {
  int group_count = 1;
  // The caller's group, where free nodes are without a policy.
  int caller_group = 0;
  // What a wait between groups costs: about a small kernel's launch.
  double wait_us = 5;
};

// Numbers of other nodes, for each node.
using NodeLists = std::vector<std::vector<int>>;

// Puts numbers in increasing order, each once.
void SortUnique(std::vector<int>* numbers);

// Each node's inputs, in increasing order, each once.
NodeLists InputsOf(const PolicyGraph& graph);

// From inputs to consumers and back. The lists are in increasing order.
NodeLists Reversed(const NodeLists& lists);

// The longest path from each node to an end of the graph, itself included;
// `edge_us` is added for each edge.
std::vector<double> LongestPaths(const PolicyGraph& graph,
                                 const NodeLists& consumers, double edge_us);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_
