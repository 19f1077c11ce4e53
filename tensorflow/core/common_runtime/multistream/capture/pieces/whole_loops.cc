// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which loops are recorded as a whole?

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"

namespace tensorflow::multistream {
namespace {

// The name of the outermost loop that the node is in; empty: in none.
std::string OutermostLoop(const std::vector<ControlFlowInfo>& frames, int id) {
  std::string outermost = frames[id].frame_name;
  const Node* parent = frames[id].parent_frame;
  while (parent != nullptr && !frames[parent->id()].frame_name.empty()) {
    outermost = frames[parent->id()].frame_name;
    parent = frames[parent->id()].parent_frame;
  }
  return outermost;
}

}  // namespace

void PieceLevels::FindWholeLoops(
    const std::vector<ControlFlowInfo>& frames,
    absl::FunctionRef<bool(const Node&)> may_be_recorded) {
  struct Found {
    std::vector<int> nodes;
    bool is_whole = true;
    int enter = -1;
    int exit = -1;
  };
  std::map<std::string, Found> found;
  for (const Node* node : graph_.op_nodes()) {
    const std::string frame = OutermostLoop(frames, node->id());
    if (frame.empty() || not_whole_.count(frame) > 0) continue;
    Found& loop = found[frame];
    loop.nodes.push_back(node->id());
    loop.is_whole = loop.is_whole && may_be_recorded(*node);
    const bool is_inner = frames[node->id()].frame_name != frame;
    if (node->IsEnter() && !is_inner) loop.enter = node->id();
    if (node->IsExit() && !is_inner) loop.exit = node->id();
  }
  loops_.clear();
  loop_of_.assign(graph_.num_node_ids(), -1);
  for (auto& [frame, loop] : found) {
    if (!loop.is_whole || loop.enter < 0 || loop.exit < 0) continue;
    for (const int id : loop.nodes) {
      loop_of_[id] = static_cast<int>(loops_.size());
    }
    // The first and the last of its nodes: nothing in the loop comes before an
    // Enter or after an Exit. All between them have these two's level.
    std::vector<int> before, after;
    for (const int id : loop.nodes) {
      for (const int from : before_[id]) {
        if (loop_of_[from] != loop_of_[id]) before.push_back(from);
      }
      for (const int to : after_[id]) {
        if (loop_of_[to] != loop_of_[id]) after.push_back(to);
      }
    }
    for (const int from : before) AddOrder(from, loop.enter);
    for (const int to : after) AddOrder(loop.exit, to);
    for (const int id : loop.nodes) {
      if (id != loop.enter) AddOrder(loop.enter, id);
      if (id != loop.exit && id != loop.enter) AddOrder(id, loop.exit);
    }
    loops_.push_back({frame, std::move(loop.nodes)});
  }
}

void PieceLevels::LetRunAsAlways(int id) {
  kinds_[id] = Kind::kBetween;
  if (loop_of_[id] < 0) return;
  not_whole_.insert(loops_[loop_of_[id]].frame);
  must_prepare_ = true;
}

}  // namespace tensorflow::multistream
