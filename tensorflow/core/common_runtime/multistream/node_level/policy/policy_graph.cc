// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

#include <algorithm>
#include <utility>

namespace tensorflow::multistream {

void SortUnique(std::vector<int>* numbers) {
  std::sort(numbers->begin(), numbers->end());
  numbers->erase(std::unique(numbers->begin(), numbers->end()), numbers->end());
}

NodeLists InputsOf(const PolicyGraph& graph) {
  NodeLists inputs;
  inputs.reserve(graph.size());
  for (const PolicyNode& node : graph) {
    std::vector<int> once = node.inputs;
    SortUnique(&once);
    inputs.push_back(std::move(once));
  }
  return inputs;
}

NodeLists Reversed(const NodeLists& lists) {
  NodeLists reversed(lists.size());
  for (size_t i = 0; i < lists.size(); ++i) {
    for (int other : lists[i]) reversed[other].push_back(static_cast<int>(i));
  }
  return reversed;
}

std::vector<double> LongestPaths(const PolicyGraph& graph,
                                 const NodeLists& consumers, double edge_us) {
  std::vector<double> longest(graph.size());
  for (int i = static_cast<int>(graph.size()) - 1; i >= 0; --i) {
    double after = 0;
    for (int consumer : consumers[i]) {
      after = std::max(after, edge_us + longest[consumer]);
    }
    longest[i] = graph[i].cost_us + after;
  }
  return longest;
}

}  // namespace tensorflow::multistream
