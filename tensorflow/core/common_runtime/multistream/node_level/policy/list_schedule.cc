// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/list_schedule.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/group_knowledge.h"

namespace tensorflow::multistream {

std::vector<int> ListSchedule(const PolicyGraph& graph,
                              const PolicyOptions& options,
                              const std::vector<int>& groups,
                              double wait_weight) {
  const NodeLists inputs = InputsOf(graph);
  // Assumes that an edge leads to each of the groups with equal chance.
  const double count = static_cast<double>(groups.size());
  const std::vector<double> to_end_us = LongestPaths(
      graph, Reversed(inputs), options.wait_us * (count - 1) / count);
  // Topological: no node is farther from the end than its inputs.
  std::vector<int> order(graph.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return to_end_us[a] > to_end_us[b]; });

  GroupKnowledge knowledge(inputs, options);
  std::vector<int> group_of(graph.size());
  std::vector<double> done_us(graph.size());
  std::vector<double> free_us(options.group_count);
  for (int node : order) {
    double ready_us = 0;
    for (int input : inputs[node]) {
      ready_us = std::max(ready_us, done_us[input]);
    }
    // When the node's own work starts, after the waits.
    auto start_us = [&](int group, int waits, double weight) {
      return std::max(ready_us, free_us[group]) +
             waits * weight * options.wait_us;
    };
    // Of equally good groups, the one with fewer waits, then the first.
    auto rank = [&](int group) {
      const int waits = knowledge.WaitsOf(node, group);
      return std::make_pair(start_us(group, waits, wait_weight), waits);
    };
    int best = graph[node].group.value_or(groups[0]);
    if (!graph[node].group.has_value()) {
      std::pair<double, int> first = rank(best);
      for (int group : groups) {
        const std::pair<double, int> other = rank(group);
        if (other >= first) continue;
        first = other;
        best = group;
      }
    }
    done_us[node] =
        start_us(best, knowledge.Run(node, best), 1) + graph[node].cost_us;
    free_us[best] = done_us[node];
    group_of[node] = best;
  }
  return group_of;
}

}  // namespace tensorflow::multistream
