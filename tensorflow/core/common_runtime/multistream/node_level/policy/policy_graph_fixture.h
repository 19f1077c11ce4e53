// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Drawn (drawing.h) and random graphs, for tests of policies.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/testing/drawing.h"

namespace tensorflow::multistream {

// Nodes are numbered in the order of the drawing. The words of a node are its
// cost, `lookup` and `dense`.
struct DrawnGraph {
  explicit DrawnGraph(absl::string_view drawing) {
    std::map<std::string, int> numbers;
    ForEachToken(drawing, [&](const DrawnToken& token,
                              const std::vector<DrawnToken>& from) {
      auto [known, is_new] =
          numbers.try_emplace(token.name, static_cast<int>(names.size()));
      if (is_new) {
        names.push_back(token.name);
        graph.emplace_back();
        PolicyNode& node = graph.back();
        if (!token.value.empty()) node.group = std::stoi(token.value);
        for (const std::string& word : token.words) {
          node.lookup |= word == "lookup";
          node.dense |= word == "dense";
          if (absl::ascii_isdigit(word[0])) node.cost_us = std::stod(word);
        }
      }
      for (const DrawnToken& input : from) {
        graph[known->second].inputs.push_back(numbers.at(input.name));
      }
    });
  }

  // "0: a b; 2: c": the nodes of each group or cluster; none if it is negative.
  std::string Say(const std::vector<int>& groups) const {
    std::map<int, std::vector<std::string>> by_group;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i] >= 0) by_group[groups[i]].push_back(names[i]);
    }
    return absl::StrJoin(by_group, "; ", [](std::string* out, const auto& of) {
      absl::StrAppend(out, of.first, ": ", absl::StrJoin(of.second, " "));
    });
  }

  PolicyGraph graph;
  std::vector<std::string> names;
};

inline PolicyOptions OptionsOf(int group_count, double wait_us,
                               int caller_group = 0) {
  PolicyOptions options;
  options.group_count = group_count;
  options.wait_us = wait_us;
  options.caller_group = caller_group;
  return options;
}

// Returns the number of the new node.
inline int Add(PolicyGraph* graph, std::vector<int> inputs = {},
               double cost_us = 1) {
  graph->emplace_back();
  graph->back().inputs = std::move(inputs);
  graph->back().cost_us = cost_us;
  return static_cast<int>(graph->size()) - 1;
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
    Add(&graph, inputs, below(options.most_cost_us + 1));
    graph[i].group = group;
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

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_POLICY_GRAPH_FIXTURE_H_
