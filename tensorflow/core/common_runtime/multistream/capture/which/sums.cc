// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// With two summands the order makes no difference.
constexpr int kFewestInOrder = 3;

// Whether the node's output is the memory of an input.
bool HandsMemoryOn(const Node& node) {
  return node.num_inputs() > 0 && !GivesShape(node) &&
         LaunchesNothing(node.type_string()) &&
         node.input_type(0) != DT_RESOURCE;
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
  for (const Edge* edge : node.in_edges()) {
    while (!edge->IsControlEdge() && HandsMemoryOn(*edge->src())) {
      // Of ops with several outputs only IdentityN hands memory on.
      const Node* passes = edge->src();
      if (!passes->input_edge(edge->src_output(), &edge).ok()) break;
    }
    if (!edge->IsControlEdge() && !KeepsItsOutput(*edge->src())) {
      summands.push_back(edge->src());
    }
  }
  return summands;
}

}  // namespace tensorflow::multistream
