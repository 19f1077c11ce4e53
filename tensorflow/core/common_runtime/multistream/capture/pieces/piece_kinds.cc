// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes may be recorded, before it is known in which piece they are?

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/kept_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/value_shapes.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

bool IsOfXla(const Node& node) {
  return absl::c_linear_search(node.input_types(), DT_STRING) ||
         absl::c_linear_search(node.output_types(), DT_STRING) ||
         absl::StartsWith(node.type_string(), "_Xla") || IsCompiled(node);
}

bool HandsHandleOn(const Node& node) {
  return absl::c_linear_search(node.output_types(), DT_RESOURCE);
}

// Whether the node is a constant that lets other nodes run after the nodes that
// the constant comes after. TensorFlow's constant folding makes one of a
// branch's pivot, which is the condition's value and so known there.
bool IsPivot(const Node& node) {
  const auto is_order = [](const Edge* edge) {
    return edge->IsControlEdge() && edge->src()->IsOp() && edge->dst()->IsOp();
  };
  return node.IsConstant() && absl::c_any_of(node.in_edges(), is_order) &&
         absl::c_any_of(node.out_edges(), is_order);
}

}  // namespace

void PieceLevels::FindKinds(const FunctionLibraryDefinition* library,
                            bool with_xla,
                            const std::vector<ControlFlowInfo>& frames) {
  std::vector<std::string> obstacles = ObstaclesAt(graph_, library);
  std::set<int> copies;
  for (const auto& [send, receive] : pairs_) copies.insert({send, receive});
  FindWholeLoops(frames, [&](const Node& node) {
    const bool is_transfer = node.IsSend() || node.IsRecv();
    return obstacles[node.id()].empty() &&
           (!is_transfer || copies.count(node.id()) > 0) &&
           (with_xla || !IsOfXla(node)) && !HasStatelessDraw(node);
  });
  for (const Node* node : graph_.op_nodes()) {
    const int id = node->id();
    waits_[id] = HasValueShape(*node);
    if (loop_of_[id] >= 0) {
      const bool launches = !node->IsControlFlow() && !node->IsConstant() &&
                            !node->IsSend() && !node->IsRecv() &&
                            !multistream::IsOnHost(*node) &&
                            !LaunchesNothing(node->type_string());
      kinds_[id] = launches ? Kind::kLaunch : Kind::kLoop;
      continue;
    }
    // A list that leaves a piece would have to be copied. Those of loops stay
    // between loops.
    if (HasVariant(*node) &&
        (loops_.empty() || !frames[id].frame_name.empty())) {
      obstacles[id] = "has a tensor list";
    }
    if (!obstacles[id].empty()) {
      VLOG(2) << "Between pieces: " << node->name() << " " << obstacles[id];
    }
    if (!obstacles[id].empty() || node->IsArg() || node->IsRetval() ||
        node->IsSend() || node->IsRecv()) {
      continue;
    }
    if (IsPivot(*node)) {
      kinds_[id] = Kind::kFree;
    } else if (HasOwnCopies(*node)) {
      kinds_[id] = Kind::kCopied;
    } else if (!node->IsControlFlow() && (with_xla || !IsOfXla(*node)) &&
               !HandsHandleOn(*node)) {
      kinds_[id] =
          multistream::IsOnHost(*node) || LaunchesNothing(node->type_string())
              ? Kind::kFree
              : Kind::kLaunch;
    }
  }
  for (const auto& [send, receive] : pairs_) {
    if (loop_of_[send] < 0 && loop_of_[receive] < 0 &&
        MayCross(graph_.FindNodeId(receive)->output_type(0))) {
      kinds_[send] = kinds_[receive] = Kind::kFree;
    }
  }
  // A value of the host for one piece travels with the piece's other inputs.
  for (const Node* node : graph_.op_nodes()) {
    if (node->IsRecv() && IsEarlyValue(*node) && !IsCopyInPlace(*node) &&
        MayCross(node->output_type(0))) {
      kinds_[node->id()] = Kind::kFree;
    }
  }
}

void PieceLevels::LeaveOutValueShapes() {
  LeaveOut(TakeValueShapes(graph_, order_, pairs_));
}

void PieceLevels::LeaveOutConditions() {
  std::set<int> left_out, sends;
  for (const auto& [send, receive] : pairs_) {
    const Node* on_host = graph_.FindNodeId(receive);
    if (!absl::c_any_of(on_host->out_nodes(),
                        [](const Node* node) { return IsAssert(*node); })) {
      continue;
    }
    std::set<int> makers;
    if (!AddMakers(send, &makers) || !AddFollowers(receive, &left_out)) return;
    left_out.insert(makers.begin(), makers.end());
    left_out.insert({send, receive});
    sends.insert(send);
  }
  if (!LeaveOut({left_out.begin(), left_out.end()})) return;
  for (const int send : sends) waits_[send] = true;
}

bool PieceLevels::AddFollowers(int id, std::set<int>* followers) const {
  std::vector<int> next = {id};
  while (!next.empty()) {
    const int from = next.back();
    next.pop_back();
    for (const int to : after_[from]) {
      if (kinds_[to] == Kind::kLaunch) return false;
      if (followers->insert(to).second) next.push_back(to);
    }
  }
  return true;
}

bool PieceLevels::AddMakers(int send, std::set<int>* makers) const {
  constexpr size_t kMost = 8;
  std::set<int> seen = {send};
  std::vector<int> next = {send};
  while (!next.empty()) {
    const int id = next.back();
    next.pop_back();
    const Node* node = graph_.FindNodeId(id);
    if (kinds_[id] == Kind::kLaunch) makers->insert(id);
    const bool is_transfer = node->IsSend() || node->IsRecv();
    // What reads a variable would keep the value from the piece that changes
    // it.
    if (makers->size() > kMost ||
        (node->op_def().is_stateful() && !is_transfer) ||
        absl::c_linear_search(node->input_types(), DT_RESOURCE) ||
        (kinds_[id] == Kind::kBetween && !before_[id].empty())) {
      return false;
    }
    for (const int from : before_[id]) {
      if (seen.insert(from).second && !graph_.FindNodeId(from)->IsArg()) {
        next.push_back(from);
      }
    }
  }
  return true;
}

bool PieceLevels::LeaveOut(const std::vector<int>& nodes) {
  constexpr int kLeastPercent = 95;
  if (nodes.empty()) return false;
  std::set<int> loops;
  for (const int id : nodes) {
    if (loop_of_[id] >= 0) loops.insert(loop_of_[id]);
  }
  const std::vector<Kind> all = kinds_;
  Find();
  const int largest = LargestPiece();
  kinds_ = all;
  for (const int id : nodes) {
    if (!IsCopied(id)) kinds_[id] = Kind::kBetween;
  }
  for (const int loop : loops) {
    for (const int id : loops_[loop].nodes) kinds_[id] = Kind::kBetween;
  }
  std::vector<Kind> rest = kinds_;
  Find();
  const bool stays = 100 * LargestPiece() >= kLeastPercent * largest;
  kinds_ = stays ? std::move(rest) : all;
  if (stays) {
    for (const int loop : loops) Divide(loop);
  }
  return stays;
}

}  // namespace tensorflow::multistream
