// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"

#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// With two summands the order makes no difference.
constexpr int kFewestInOrder = 3;

// Whether the output of the node is the memory of an input.
bool HandsMemoryOn(const Node& node) {
  return HandsValueOn(node) ||
         (LaunchesNothing(node.type_string()) && !GivesShape(node));
}

// Whether an output may be the memory of an input, or a part of it.
bool MayHandMemoryOn(const Node& node) {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "All",       "Any",   "BroadcastTo", "Cast",   "Concat",
      "ConcatV2",  "Max",   "EnsureShape", "Mean",   "Min",
      "Pack",      "Pad",   "PadV2",       "Prod",   "Reverse",
      "ReverseV2", "Slice", "Split",       "SplitV", "StridedSlice",
      "Sum",       "Tile",  "Transpose",   "Unpack"};
  return HandsMemoryOn(node) || ops->contains(node.type_string());
}

bool KeepsItsOutput(const Node& node) {
  return node.IsConstant() || node.IsArg() || node.IsVariable() ||
         node.type_string() == "ReadVariableOp";
}

}  // namespace

std::vector<const Node*> SummandsOf(const Node& node) {
  std::vector<const Node*> summands;
  if (node.type_string() != "AddN" || node.num_inputs() < kFewestInOrder ||
      DataTypeIsInteger(node.output_type(0))) {
    return summands;
  }
  std::set<const Node*> seen;
  std::vector<const Node*> next = {&node};
  while (!next.empty()) {
    const Node* at = next.back();
    next.pop_back();
    for (const Edge* edge : at->in_edges()) {
      const Node* from = edge->src();
      // Other inputs are sizes, or what a branch depends on.
      if (edge->IsControlEdge() ||
          at->input_type(edge->dst_input()) != node.output_type(0) ||
          KeepsItsOutput(*from) || !seen.insert(from).second) {
        continue;
      }
      if (MayHandMemoryOn(*from)) next.push_back(from);
      if (!HandsMemoryOn(*from)) summands.push_back(from);
    }
  }
  return summands;
}

}  // namespace tensorflow::multistream
