// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"

#include <algorithm>

#include "absl/algorithm/container.h"
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
  static const auto* ops =
      new absl::flat_hash_set<absl::string_view>{"All",
                                                 "Any",
                                                 "BatchToSpaceND",
                                                 "BroadcastTo",
                                                 "Cast",
                                                 "Concat",
                                                 "ConcatV2",
                                                 "Einsum",
                                                 "EnsureShape",
                                                 "MatrixBandPart",
                                                 "Max",
                                                 "Mean",
                                                 "Min",
                                                 "MirrorPad",
                                                 "MirrorPadGrad",
                                                 "Pack",
                                                 "Pad",
                                                 "PadV2",
                                                 "Prod",
                                                 "Reverse",
                                                 "ReverseV2",
                                                 "Slice",
                                                 "SpaceToBatchND",
                                                 "Split",
                                                 "SplitV",
                                                 "StridedSlice",
                                                 "Sum",
                                                 "Tile",
                                                 "Transpose",
                                                 "Unpack"};
  const bool adds_one = node.type_string() == "AddN" && node.num_inputs() == 1;
  return HandsMemoryOn(node) || adds_one || ops->contains(node.type_string());
}

bool KeepsItsOutput(const Node& node) {
  return node.IsConstant() || node.IsArg() || node.IsVariable() ||
         node.type_string() == "ReadVariableOp";
}

bool AddsInOrder(const Node& node) {
  return node.type_string() == "AddN" && node.num_inputs() >= kFewestInOrder &&
         !DataTypeIsInteger(node.output_type(0));
}

// The nodes that may have made the memory of the inputs of `node`, of `type`,
// or hand it on to `node`.
std::vector<const Node*> PathsTo(const Node& node, DataType type) {
  std::vector<const Node*> found;
  WalkFinds(node, [&](const Node& at, auto go_to) {
    for (const Edge* edge : at.in_edges()) {
      const Node* from = edge->src();
      // Other inputs are sizes, or what a branch depends on.
      if (edge->IsControlEdge() || at.input_type(edge->dst_input()) != type ||
          KeepsItsOutput(*from) || absl::c_linear_search(found, from)) {
        continue;
      }
      found.push_back(from);
      if (MayHandMemoryOn(*from)) go_to(from);
    }
    return false;
  });
  return found;
}

}  // namespace

std::vector<const Node*> WithSummands(const Node& node) {
  return AddsInOrder(node) ? PathsTo(node, node.output_type(0))
                           : std::vector<const Node*>();
}

std::vector<const Node*> SummandsOf(const Node& node) {
  std::vector<const Node*> summands = WithSummands(node);
  summands.erase(
      std::remove_if(summands.begin(), summands.end(),
                     [](const Node* it) { return HandsMemoryOn(*it); }),
      summands.end());
  return summands;
}

bool MayHaveMemoryOf(const Node& maker, const Node& node, int output) {
  return &maker == &node ||
         (MayHandMemoryOn(node) &&
          absl::c_linear_search(PathsTo(node, node.output_type(output)),
                                &maker));
}

}  // namespace tensorflow::multistream
