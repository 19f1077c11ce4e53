// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which loops are recorded as a whole?

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_levels.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/value_shapes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// Of a loop, with the iterations of the loops in it. More would take seconds to
// record.
constexpr int64_t kMostIterations = 1000;

// The number that a constant has, which reaches the node through a loop's
// Enter; nullopt: it has none.
std::optional<int64_t> ConstantAt(const Node* node) {
  while (!node->IsConstant() && HandsValueOn(*node)) {
    if (node->IsMerge() || !node->input_node(0, &node).ok()) {
      return std::nullopt;
    }
  }
  Tensor value;
  if (!node->IsConstant() ||
      !GetNodeAttr(node->attrs(), "value", &value).ok() ||
      value.NumElements() != 1) {
    return std::nullopt;
  }
  if (value.dtype() == DT_INT32) return value.flat<int32_t>()(0);
  if (value.dtype() == DT_INT64) return value.flat<int64_t>()(0);
  return std::nullopt;
}

// How often the constants of a condition let its loop run: `tf.while_loop` asks
// `i < n`, and `i < maximum_iterations` as well. 1 if no constant does.
int64_t IterationsOf(const Node& condition, const PieceLevels::Sends& sends) {
  std::optional<int64_t> most;
  WalkFinds(condition, [&](const Node& node, auto go_to) {
    if (const auto send = sends.find(&node); send != sends.end()) {
      go_to(send->second);
      return false;
    }
    const Node* input = nullptr;
    if (node.type_string() == "Less" && node.input_node(1, &input).ok()) {
      const std::optional<int64_t> bound = ConstantAt(input);
      if (bound) most = std::min(most.value_or(*bound), *bound);
    }
    if (!node.IsLoopCond() && !node.IsSend() &&
        node.type_string() != "LogicalAnd") {
      return false;
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (node.input_node(i, &input).ok()) go_to(input);
    }
    return false;
  });
  return std::max<int64_t>(most.value_or(1), 1);
}

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
    int64_t iterations = 1;
    int enter = -1;
    int exit = -1;
  };
  Sends sends;
  for (const auto& [send, receive] : pairs_) {
    sends[graph_.FindNodeId(receive)] = graph_.FindNodeId(send);
  }
  std::map<std::string, Found> found;
  for (const Node* node : graph_.op_nodes()) {
    const std::string frame = OutermostLoop(frames, node->id());
    if (frame.empty() || divides_loops_ || not_whole_.count(frame) > 0) {
      continue;
    }
    Found& loop = found[frame];
    loop.nodes.push_back(node->id());
    loop.is_whole = loop.is_whole && may_be_recorded(*node);
    if (loop.is_whole && node->IsLoopCond()) {
      loop.iterations *=
          std::min(IterationsOf(*node, sends), kMostIterations + 1);
      loop.is_whole =
          loop.iterations <= kMostIterations && IsCounted(*node, sends);
    }
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

// Walks from the condition to what it is made of: values, and shapes of
// tensors.
bool PieceLevels::IsCounted(const Node& condition, const Sends& sends) const {
  struct Step {
    const Node* node;
    bool shape;  // only the shape of what the node gives is needed
    bool operator<(const Step& other) const {
      return std::pair(node, shape) < std::pair(other.node, other.shape);
    }
  };
  std::set<Step> seen = {{&condition, false}};
  std::vector<Step> next = {{&condition, false}};
  const auto go_to = [&](const Node* node, bool shape) {
    if (seen.insert({node, shape}).second) next.push_back({node, shape});
  };
  while (!next.empty()) {
    const auto [node, shape] = next.back();
    next.pop_back();
    if (const auto send = sends.find(node); send != sends.end()) {
      go_to(send->second, shape);
      continue;
    }
    if (GivesShape(*node) && shape) continue;
    if (shape && HasValueShape(*node)) return false;
    const bool begins = node->num_inputs() == 0;
    if (begins && !shape && !node->IsConstant()) return false;
    const bool of_list = node->type_string() == "TensorListLength";
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) continue;
      const int input = edge->dst_input();
      // A kernel takes sizes on the host.
      const bool is_size = inputs_[node->id()][input] == HOST_MEMORY &&
                           !node->IsSend() && !HandsValueOn(*node);
      const bool chooses = node->IsSwitch() && input == 1;
      const bool is_shape =
          shape ? !is_size && !chooses : GivesShape(*node) || of_list;
      go_to(edge->src(), is_shape);
    }
  }
  return true;
}

void PieceLevels::LetRunAsAlways(int id) {
  kinds_[id] = Kind::kBetween;
  if (loop_of_[id] >= 0) Divide(loop_of_[id]);
}

void PieceLevels::LetListRunAsAlways(int id) {
  WalkFinds(*graph_.FindNodeId(id), [this](const Node& node, auto go_to) {
    LetRunAsAlways(node.id());
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() ||
          edge->src()->output_type(edge->src_output()) != DT_VARIANT) {
        continue;
      }
      if (edge->src()->IsOp() && Launches(edge->src()->id())) {
        go_to(edge->src());
      }
    }
    return false;
  });
}

void PieceLevels::Divide(int loop) {
  not_whole_.insert(loops_[loop].frame);
  must_prepare_ = true;
}

}  // namespace tensorflow::multistream
