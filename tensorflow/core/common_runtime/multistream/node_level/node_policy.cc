// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/stream_policy.h"

namespace tensorflow::multistream {
namespace {

using Groups = std::vector<std::optional<int>>;

// The cost of an op whose time has not been measured.
constexpr double kLaunchUs = 6;
constexpr double kHandingOnUs = 1;
// A pass-through op with more inputs than this gets its group by the policy.
constexpr size_t kMostHandedOn = 64;

bool IsDense(absl::string_view type) {
  return absl::StrContains(type, "MatMul") ||
         absl::StrContains(type, "Conv2D") ||
         absl::StrContains(type, "Conv3D") || type == "Einsum" ||
         absl::StartsWith(type, "DepthwiseConv");
}

class Placer {
 public:
  Placer(const Graph& graph, const std::vector<Node*>& order,
         const std::vector<NodeForPolicy>& nodes,
         const NodePlanOptions& options)
      : graph_(graph), order_(order), nodes_(nodes), options_(options) {}

  Groups Place(Policy policy, int at_least) {
    FindWhatMayNotRunOnce();
    MakePolicyGraph();
    PolicyOptions options;
    options.caller_group = options_.caller_group;
    options.wait_us = options_.guess.wait_us;
    options.group_count = std::max(at_least, options_.caller_group + 1);
    for (const PolicyNode& node : policy_graph_) {
      options.group_count =
          std::max(options.group_count, node.group.value_or(0) + 1);
    }
    const std::vector<int> groups =
        AssignGroups(policy, policy_graph_, options);
    groups_.resize(graph_.num_node_ids());
    for (const Node* node : order_) {
      const int id = node->id();
      if (number_[id] >= 0) groups_[id] = groups[number_[id]];
    }
    PlaceWhatHandsOn();
    // Fixed nodes keep their groups.
    for (const Node* node : order_) {
      if (IsFixed(node->id())) groups_[node->id()].reset();
    }
    return std::move(groups_);
  }

 private:
  // Finds nodes in branches and loops of control flow. After a loop, and after
  // a merge of branches outside loops, nodes run once again.
  void FindWhatMayNotRunOnce() {
    const int n = graph_.num_node_ids();
    conditional_.resize(n);
    std::vector<int> loops(n), branches(n);
    for (const Node* node : order_) {
      const int id = node->id();
      for (const Edge* edge : node->in_edges()) {
        const Node* from = edge->src();
        if (from->IsNextIteration()) continue;
        loops[id] = std::max(loops[id], loops[from->id()] - from->IsExit());
        branches[id] = std::max(branches[id], branches[from->id()]);
      }
      loops[id] += node->IsEnter();
      if (loops[id] == 0) branches[id] += node->IsSwitch() - node->IsMerge();
      branches[id] = std::max(branches[id], 0);
      conditional_[id] =
          loops[id] > 0 || branches[id] > 0 || node->IsControlFlow();
    }
  }

  // Whether the node keeps its group, or the caller's, whatever the policy.
  bool IsFixed(int id) const {
    return nodes_[id].group.has_value() || conditional_[id] ||
           !nodes_[id].launched;
  }

  // Whether the node gets its group from a neighbour, not from the policy.
  bool IsBeside(const Node& node) const {
    return !IsFixed(node.id()) &&
           (HandsOnOnly(node) || nodes_[node.id()].on_host);
  }

  void MakePolicyGraph() {
    number_.assign(graph_.num_node_ids(), -1);
    handed_on_.resize(graph_.num_node_ids());
    for (const Node* node : order_) {
      const int id = node->id();
      if (!nodes_[id].launched) continue;
      std::vector<int> before;
      for (int from : nodes_[id].before) {
        if (number_[from] >= 0) {
          before.push_back(from);
        } else {
          before.insert(before.end(), handed_on_[from].begin(),
                        handed_on_[from].end());
        }
      }
      SortUnique(&before);
      if (IsBeside(*node) && before.size() <= kMostHandedOn) {
        handed_on_[id] = std::move(before);
        continue;
      }
      PolicyNode made;
      for (int from : before) made.inputs.push_back(number_[from]);
      made.group = nodes_[id].group;
      if (conditional_[id] && !made.group) made.group = options_.caller_group;
      made.cost_us = CostOf(*node);
      made.lookup = IsEmbeddingLookup(*node);
      made.dense = IsDense(node->type_string());
      number_[id] = static_cast<int>(policy_graph_.size());
      policy_graph_.push_back(std::move(made));
    }
  }

  double CostOf(const Node& node) const {
    if (HandsOnOnly(node)) return kHandingOnUs;
    std::optional<double> known;
    if (options_.cost_us) known = options_.cost_us(node);
    return known.value_or(kLaunchUs);
  }

  void PlaceWhatHandsOn() {
    // With the last input's group, one wait covers the node and that input.
    for (const Node* node : order_) {
      const int id = node->id();
      if (groups_[id] || !IsBeside(*node)) continue;
      if (!handed_on_[id].empty()) groups_[id] = GroupOfLast(handed_on_[id]);
    }
    // The rest has no launched input: the reading of a variable, for example.
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      const Node& node = **it;
      if (groups_[node.id()] || !IsBeside(node)) continue;
      groups_[node.id()] = GroupOfMostConsumers(node);
    }
  }

  int GroupOfLast(const std::vector<int>& ids) const {
    const int last = *std::max_element(
        ids.begin(), ids.end(),
        [this](int a, int b) { return number_[a] < number_[b]; });
    return *groups_[last];
  }

  std::optional<int> GroupOfMostConsumers(const Node& node) const {
    std::map<int, int> consumers;
    for (const Edge* edge : node.out_edges()) {
      const std::optional<int>& group = groups_[edge->dst()->id()];
      if (!edge->IsControlEdge() && group) ++consumers[*group];
    }
    std::optional<int> most;
    for (const auto& [group, count] : consumers) {
      if (!most || count > consumers[*most]) most = group;
    }
    return most;
  }

  const Graph& graph_;
  const std::vector<Node*>& order_;
  const std::vector<NodeForPolicy>& nodes_;
  const NodePlanOptions& options_;
  std::vector<bool> conditional_;
  PolicyGraph policy_graph_;
  std::vector<int> number_;  // in policy_graph_, or -1
  // By pass-through node: the nodes of policy_graph_ that it hands on.
  std::vector<std::vector<int>> handed_on_;
  Groups groups_;
};

}  // namespace

bool IsEmbeddingLookup(const Node& node) {
  const std::string& type = node.type_string();
  if (type == "ResourceGather" || type == "ResourceGatherNd") return true;
  if (type != "Gather" && type != "GatherV2" && type != "GatherNd" &&
      !absl::StartsWith(type, "SparseSegment")) {
    return false;
  }
  if (absl::EndsWith(type, "Grad") || absl::EndsWith(type, "GradV2")) {
    return false;
  }
  const Node* table = nullptr;
  if (!node.input_node(0, &table).ok()) return false;
  while (table->IsIdentity() || table->type_string() == "Cast") {
    if (!table->input_node(0, &table).ok()) return false;
  }
  return table->type_string() == "ReadVariableOp" || table->IsVariable() ||
         table->IsConstant();
}

bool HandsOnOnly(const Node& node) {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "_Arg",  "Const",          "ExpandDims", "Identity", "Reshape",
      "Shape", "ReadVariableOp", "Squeeze",    "NoOp",     "VarHandleOp"};
  return ops->contains(node.type_string()) || node.IsRecv();
}

std::vector<std::optional<int>> GroupsByPolicy(
    const Graph& graph, const std::vector<Node*>& order,
    const std::vector<NodeForPolicy>& nodes, Policy policy, int groups,
    const NodePlanOptions& options) {
  return Placer(graph, order, nodes, options).Place(policy, groups);
}

}  // namespace tensorflow::multistream
