// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/early_values.h"

#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kEarly[] = "_multi_stream_early";

// A transfer: tensor name, sending device, receiving device.
using Transfer = std::tuple<std::string, std::string, std::string>;

Transfer TransferOf(const Node& node) {
  Transfer transfer;
  TryGetNodeAttr(node.attrs(), "tensor_name", &std::get<0>(transfer));
  TryGetNodeAttr(node.attrs(), "send_device", &std::get<1>(transfer));
  TryGetNodeAttr(node.attrs(), "recv_device", &std::get<2>(transfer));
  return transfer;
}

// Whether the node might wait for another op of the step without an edge
// between them, as queue ops do. Variable ops do not wait; a counter of
// training steps is often on the host. Dataset iterators do not wait for the
// step either: a data set has its own functions and threads.
bool MayWait(const Node& node) {
  static const auto* do_not = new absl::flat_hash_set<absl::string_view>{
      "AssignAddVariableOp", "AssignSubVariableOp",
      "AssignVariableOp",    "IteratorFromStringHandleV2",
      "IteratorGetNext",     "IteratorGetNextSync",
      "IteratorV2",          "ReadVariableOp",
      "VarHandleOp"};
  return node.op_def().is_stateful() && !node.IsArg() &&
         !do_not->contains(node.type_string());
}

// Whether no ancestor of the node is a receive or may wait.
bool IsEarly(const Node& node) {
  absl::flat_hash_set<const Node*> seen = {&node};
  std::vector<const Node*> left = {&node};
  while (!left.empty()) {
    const Node* next = left.back();
    left.pop_back();
    for (const Node* before : next->in_nodes()) {
      if (!seen.insert(before).second || !before->IsOp()) continue;
      if (before->IsRecv() || MayWait(*before)) return false;
      left.push_back(before);
    }
  }
  return true;
}

}  // namespace

void MarkEarlyValues(absl::Span<Graph* const> parts) {
  absl::flat_hash_map<Transfer, Node*> received;
  for (Graph* part : parts) {
    for (Node* node : part->op_nodes()) {
      if (node->IsRecv()) received[TransferOf(*node)] = node;
    }
  }
  for (Graph* part : parts) {
    for (const Node* node : part->op_nodes()) {
      if (!node->IsSend() || !IsEarly(*node)) continue;
      const auto found = received.find(TransferOf(*node));
      if (found != received.end()) found->second->AddAttr(kEarly, true);
    }
  }
}

bool IsEarlyValue(const Node& node) {
  bool early = false;
  return TryGetNodeAttr(node.attrs(), kEarly, &early) && early;
}

}  // namespace multistream
}  // namespace tensorflow
