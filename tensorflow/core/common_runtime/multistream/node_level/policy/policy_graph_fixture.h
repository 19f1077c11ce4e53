// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Drawn and random graphs, for tests of policies.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow {
namespace multistream {

// Returns the number of the new node.
inline int Add(PolicyGraph* graph, std::vector<int> inputs = {},
               double cost_us = 1, std::optional<int> group = {}) {
  PolicyNode node;
  node.inputs = std::move(inputs);
  node.cost_us = cost_us;
  node.group = group;
  graph->push_back(std::move(node));
  return static_cast<int>(graph->size()) - 1;
}
inline int AddLookup(PolicyGraph* graph, std::vector<int> inputs = {},
                     double cost_us = 1, std::optional<int> group = {}) {
  const int node = Add(graph, std::move(inputs), cost_us, group);
  (*graph)[node].lookup = true;
  return node;
}
inline int AddDense(PolicyGraph* graph, std::vector<int> inputs = {},
                    double cost_us = 1) {
  const int node = Add(graph, std::move(inputs), cost_us);
  (*graph)[node].dense = true;
  return node;
}

//   root --> branch 0: node --> ... node --> end
//        '-> branch 1 ...                '->
inline PolicyGraph ForkJoin(int branches, int length, double cost_us) {
  PolicyGraph graph;
  const int root = Add(&graph);
  std::vector<int> last(branches, root);
  for (int i = 0; i < length; ++i) {
    for (int& node : last) node = Add(&graph, {node}, cost_us);
  }
  Add(&graph, last);
  return graph;
}

struct RandomGraphOptions {
  int nodes = 8;
  int most_inputs = 3;
  int farthest_input = 1000;  // how many nodes back
  int most_cost_us = 10;
  int group_count = 1;  // of fixed groups
  double fixed = 0;     // share of the nodes
  double lookups = 0;
  double dense = 0;
};

inline PolicyGraph RandomGraph(const RandomGraphOptions& options,
                               std::mt19937* random) {
  auto below = [&](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(*random);
  };
  auto with = [&](double share) {
    return std::bernoulli_distribution(share)(*random);
  };
  PolicyGraph graph;
  for (int i = 0; i < options.nodes; ++i) {
    std::vector<int> inputs;
    // With duplicates, as a node may take an input twice.
    for (int j = i == 0 ? 0 : below(options.most_inputs + 1); j > 0; --j) {
      inputs.push_back(i - 1 - below(std::min(i, options.farthest_input)));
    }
    std::optional<int> group;
    if (with(options.fixed)) group = below(options.group_count);
    Add(&graph, inputs, below(options.most_cost_us + 1), group);
    graph[i].lookup = with(options.lookups);
    graph[i].dense = !graph[i].lookup && with(options.dense);
  }
  return graph;
}

// paths[a][b]: whether a path leads from a to b.
inline std::vector<std::vector<bool>> AllPaths(const PolicyGraph& graph) {
  const size_t n = graph.size();
  std::vector<std::vector<bool>> paths(n, std::vector<bool>(n));
  for (size_t to = 0; to < n; ++to) {
    for (int input : graph[to].inputs) {
      paths[input][to] = true;
      for (size_t from = 0; from < n; ++from) {
        if (paths[from][input]) paths[from][to] = true;
      }
    }
  }
  return paths;
}

// The edges, from and to, that no longer path implies.
inline std::vector<std::pair<int, int>> NeededEdges(const PolicyGraph& graph) {
  const std::vector<std::vector<bool>> paths = AllPaths(graph);
  const int n = static_cast<int>(graph.size());
  std::vector<std::pair<int, int>> edges;
  for (int from = 0; from < n; ++from) {
    for (int to = 0; to < n; ++to) {
      if (!paths[from][to]) continue;
      bool implied = false;
      for (int by = 0; by < n; ++by)
        implied |= paths[from][by] && paths[by][to];
      if (!implied) edges.emplace_back(from, to);
    }
  }
  return edges;
}

// Calls `visit` with each way to give `nodes` nodes to `groups` groups.
inline void ForAllAssignments(
    int nodes, int groups,
    const std::function<void(const std::vector<int>&)>& visit) {
  std::vector<int> assigned(nodes);
  for (;;) {
    visit(assigned);
    int i = 0;
    while (i < nodes && ++assigned[i] == groups) assigned[i++] = 0;
    if (i == nodes) return;
  }
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_
