// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/value_shapes.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace tensorflow::multistream {
namespace {

// A node's id, and one of its outputs.
using Output = std::pair<int, int>;

bool HasValueShape(const Node& node, int output) {
  constexpr int kPlaces = 1;  // for each value, where it is among the others
  static const auto* unique = new absl::flat_hash_set<absl::string_view>{
      "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2"};
  static const auto* others = new absl::flat_hash_set<absl::string_view>{
      "DynamicPartition", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
      "NonMaxSuppressionV4", "Where"};
  const absl::string_view op = node.type_string();
  return (unique->contains(op) && output != kPlaces) || others->contains(op);
}

// Whether the output's shape depends on that of this input. Rows that are
// gathered are as many as the indices, however many there are to choose from.
bool ShapeFollows(const Node& node, int input) {
  static const auto* gathers = new absl::flat_hash_set<absl::string_view>{
      "Gather", "GatherV2", "ResourceGather"};
  return input > 0 || !gathers->contains(node.type_string());
}

}  // namespace

bool HasValueShape(const Node& node) { return HasValueShape(node, 0); }

std::vector<int> TakeValueShapes(
    const Graph& graph, const std::vector<int>& order,
    const std::vector<std::pair<int, int>>& copies) {
  const absl::flat_hash_map<int, int> receive_of(copies.begin(), copies.end());
  std::vector<int> takers;
  absl::flat_hash_set<Output> found;
  for (const int id : order) {
    const Node* node = graph.FindNodeId(id);
    bool takes = false, follows = false;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() ||
          !found.contains({edge->src()->id(), edge->src_output()})) {
        continue;
      }
      takes = true;
      follows |= ShapeFollows(*node, edge->dst_input());
    }
    if (takes) takers.push_back(id);
    const auto receive = receive_of.find(id);
    if (takes && receive != receive_of.end()) {
      takers.push_back(receive->second);
      found.insert({receive->second, 0});
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (follows || HasValueShape(*node, i)) found.insert({id, i});
    }
  }
  return takers;
}

}  // namespace tensorflow::multistream
