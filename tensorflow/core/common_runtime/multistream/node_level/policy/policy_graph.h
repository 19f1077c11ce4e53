// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a policy, which gives nodes to stream groups, know of a graph? Pure
// graph code: no TensorFlow graph in it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_

#include <optional>
#include <vector>

namespace tensorflow::multistream {

struct PolicyNode {
  // Numbers of the nodes that this node must come after. They are lower than
  // its own; duplicates are allowed. Constants and host values, which no stream
  // waits for, should not be among them.
  std::vector<int> inputs;
  // The node's fixed group, in [0, group_count): the user chose it, or the node
  // is bound to it. A node without one is *free*.
  std::optional<int> group;
  // How long the node keeps its group busy: launching or running, whichever is
  // longer. Not negative.
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
  // The caller's group: has all free nodes if there is no policy.
  int caller_group = 0;
  // The cost of a wait between groups: about a small kernel's launch.
  double wait_us = 5;
};

// Numbers of other nodes, for each node.
using NodeLists = std::vector<std::vector<int>>;

// Sorts the numbers and removes duplicates.
void SortUnique(std::vector<int>* numbers);

// Each node's inputs, sorted and without duplicates.
NodeLists InputsOf(const PolicyGraph& graph);

// Makes consumers of inputs, or inputs of consumers. The lists are sorted.
NodeLists Reversed(const NodeLists& lists);

// The longest path from each node to an end of the graph, the node included;
// `edge_us` is added for each edge.
std::vector<double> LongestPaths(const PolicyGraph& graph,
                                 const NodeLists& consumers, double edge_us);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_H_
