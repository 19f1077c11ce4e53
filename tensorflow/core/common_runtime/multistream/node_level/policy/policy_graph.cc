/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

#include <algorithm>
#include <utility>

namespace tensorflow {
namespace multistream {

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

}  // namespace multistream
}  // namespace tensorflow
