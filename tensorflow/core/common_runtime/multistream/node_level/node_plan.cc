// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/chain_cover.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph_node_util.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

// A node that launches nothing, such as a NoOp that joins many nodes, hands its
// predecessors on to its successors. If it has more predecessors than this, its
// successors wait for all groups instead.
constexpr size_t kMostHandedOn = 64;

// The nodes that a node must come after. `all`: it comes after the ends of all
// groups.
struct Before {
  std::vector<int> nodes;  // sorted
  bool all = false;
};

using Why = NodePlan::Why;

class Planner {
 public:
  Planner(const Graph& graph, const NodePlanOptions& options,
          const std::function<NodeFacts(const Node&)>& facts_of)
      : graph_(graph), options_(options), facts_(graph.num_node_ids()) {
    for (const Node* node : graph.op_nodes()) {
      facts_[node->id()] = facts_of(*node);
      has_dead_ |= node->IsSwitch() || node->IsMerge() || node->IsEnter();
    }
    // In topological order, if the back edges of loops are left out.
    GetReversePostOrder(
        graph, &order_, NodeComparatorID(),
        [](const Edge& edge) { return !edge.src()->IsNextIteration(); });
    order_.erase(std::remove_if(order_.begin(), order_.end(),
                                [](Node* node) { return !node->IsOp(); }),
                 order_.end());
  }

  absl::StatusOr<NodePlan> Make() {
    plan_.nodes.resize(graph_.num_node_ids());
    plan_.groups_used.assign(options_.group_count, false);
    FindBefore();
    for (const Node* node : order_) TF_RETURN_IF_ERROR(Assign(*node));
    TF_RETURN_IF_ERROR(AssignByPolicies());
    for (const Node* node : order_) {
      NodePlan::Node& planned = plan_.nodes[node->id()];
      if (planned.why == Why::kNone) AssignCallerGroup(&planned);
      if (facts_[node->id()].launched) plan_.groups_used[planned.group] = true;
    }
    // Not if nodes may be dead: a dead node orders nothing, so no path is sure.
    if (options_.reduce && !has_dead_) Reduce();
    for (const Node* node : order_) PlanWaits(node->id());
    FindStarts();
    return std::move(plan_);
  }

 private:
  absl::Status Assign(const Node& node) {
    NodePlan::Node& planned = plan_.nodes[node.id()];
    const NodeFacts& facts = facts_[node.id()];
    std::optional<int> from_file;
    if (options_.file != nullptr) {
      from_file = options_.file->GroupOf(node.name());
    }
    std::optional<int> from_scope;
    int attribute;
    if (TryGetNodeAttr(node.attrs(), kStreamGroupAttr, &attribute)) {
      from_scope = attribute;
    }
    // The file was checked against the GPU with the most groups: check again.
    for (const std::optional<int>& group : {from_file, from_scope}) {
      if (!group || (*group >= 0 && *group < options_.group_count)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("Node ", FormatNodeForError(node), " (",
                       node.type_string(), ") is in stream group ", *group,
                       ", and the GPU has ", options_.group_count,
                       " (TF_GPU_STREAM_GROUP_COUNT, or the session's "
                       "multi_stream_num)"));
    }
    if (facts.needs_leader) {
      planned.group = 0;
      planned.why = Why::kLeader;
    } else if (node.IsSend() || node.IsRecv() || node.IsArg()) {
      // The step's rendezvous places tensors in one group's memory, and the
      // caller's group is the one that has waited for the arguments.
      AssignCallerGroup(&planned);
    } else if (from_file) {
      planned.group = *from_file;
      planned.why = Why::kFile;
    } else if (from_scope) {
      planned.group = *from_scope;
      planned.why = Why::kScope;
    } else if (options_.propagate && Propagate(node, &planned)) {
    } else if (facts.keeps_scratch) {
      planned.group = 0;
      planned.why = Why::kDefault;
    }
    return absl::OkStatus();
  }

  void AssignCallerGroup(NodePlan::Node* planned) const {
    planned->group = options_.caller_group;
    planned->why = Why::kDefault;
  }

  // Policies run in turn: each sees groups chosen by earlier ones as fixed.
  absl::Status AssignByPolicies() {
    std::vector<NodePolicy> policies;
    std::vector<int> policy_of(graph_.num_node_ids(), -1);
    for (const Node* node : order_) {
      if (plan_.nodes[node->id()].why != Why::kNone) continue;
      TF_ASSIGN_OR_RETURN(const NodePolicy policy, PolicyOf(*node, options_));
      if (policy.policy == Policy::kNone) continue;
      auto known = std::find(policies.begin(), policies.end(), policy);
      policy_of[node->id()] = static_cast<int>(known - policies.begin());
      if (known == policies.end()) policies.push_back(policy);
    }
    for (size_t i = 0; i < policies.size(); ++i) {
      std::vector<NodeForPolicy> nodes(graph_.num_node_ids());
      for (const Node* node : order_) {
        const int id = node->id();
        const std::vector<bool>& on_host = facts_[id].on_host;
        nodes[id].before = before_[id].nodes;
        nodes[id].launched = facts_[id].launched;
        nodes[id].on_host =
            !on_host.empty() &&
            std::find(on_host.begin(), on_host.end(), false) == on_host.end();
        if (policy_of[id] != static_cast<int>(i)) {
          nodes[id].group = plan_.nodes[id].why == Why::kNone
                                ? options_.caller_group
                                : plan_.nodes[id].group;
        }
      }
      const auto groups =
          GroupsByPolicy(graph_, order_, nodes, policies[i].policy,
                         policies[i].groups, options_);
      for (const Node* node : order_) {
        const int id = node->id();
        if (policy_of[id] != static_cast<int>(i) || !groups[id]) continue;
        plan_.nodes[id].group = *groups[id];
        plan_.nodes[id].why = Why::kPolicy;
      }
    }
    return absl::OkStatus();
  }

  bool Propagate(const Node& node, NodePlan::Node* planned) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Edge* edge;
      if (!node.input_edge(i, &edge).ok()) continue;
      const NodePlan::Node& from = plan_.nodes[edge->src()->id()];
      if (from.why == Why::kFile || from.why == Why::kScope ||
          from.why == Why::kInput) {
        planned->group = from.group;
        planned->why = Why::kInput;
        return true;
      }
    }
    return false;
  }

  // Whether the later node must run after the earlier node's launched work.
  bool IsOrdered(const Edge& edge) const {
    if (edge.IsControlEdge()) return true;
    const DataType type = edge.src()->output_type(edge.src_output());
    // A list's elements may be in other memory than the list.
    if (type == DT_VARIANT) return true;
    if (type == DT_RESOURCE) return false;
    const std::vector<bool>& on_host = facts_[edge.src()->id()].on_host;
    const size_t output = edge.src_output();
    return output >= on_host.size() || !on_host[output];
  }

  void FindBefore() {
    before_.resize(graph_.num_node_ids());
    for (const Node* node : order_) {
      Before& before = before_[node->id()];
      for (const Edge* edge : node->in_edges()) {
        const Node* from = edge->src();
        if (!from->IsOp() || !IsOrdered(*edge)) continue;
        if (facts_[from->id()].launched) {
          before.nodes.push_back(from->id());
          continue;
        }
        const Before& handed_on = before_[from->id()];
        before.all |= handed_on.all;
        before.nodes.insert(before.nodes.end(), handed_on.nodes.begin(),
                            handed_on.nodes.end());
      }
      SortUnique(&before.nodes);
      // A ControlTrigger runs even if its inputs were dead, so not launched.
      before.all |= node->type_string() == "ControlTrigger";
      if (!facts_[node->id()].launched && before.nodes.size() > kMostHandedOn) {
        before.all = true;
        before.nodes.clear();
      }
    }
  }

  bool IsCross(int from, int to) const {
    return plan_.nodes[from].group != plan_.nodes[to].group;
  }

  // Leaves out waits that streams and other waits imply.
  void Reduce() {
    std::vector<int> position(graph_.num_node_ids());
    for (size_t i = 0; i < order_.size(); ++i) position[order_[i]->id()] = i;
    NodeLists inputs(order_.size());  // by position
    for (const Node* node : order_) {
      const int id = node->id();
      if (!facts_[id].launched) continue;
      std::vector<int>& inputs_of_node = inputs[position[id]];
      for (int from : before_[id].nodes) {
        inputs_of_node.push_back(position[from]);
      }
      // Within a group, the launch order is the stream's order, for any edge.
      for (const Edge* edge : node->in_edges()) {
        const int from = edge->src()->id();
        if (edge->src()->IsOp() && facts_[from].launched &&
            !IsCross(from, id)) {
          inputs_of_node.push_back(position[from]);
        }
      }
      SortUnique(&inputs_of_node);
    }
    const ReducedGraph reduced(inputs);
    for (const Node* node : order_) {
      const int id = node->id();
      if (!facts_[id].launched) continue;
      const std::vector<int>& needed = reduced.inputs()[position[id]];
      std::vector<int>& nodes = before_[id].nodes;
      const size_t all = nodes.size();
      nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                                 [&](int from) {
                                   return IsCross(from, id) &&
                                          !std::binary_search(needed.begin(),
                                                              needed.end(),
                                                              position[from]);
                                 }),
                  nodes.end());
      plan_.waits_left_out += static_cast<int>(all - nodes.size());
    }
  }

  void PlanWaits(int id) {
    if (!facts_[id].launched) return;
    NodePlan::Node& planned = plan_.nodes[id];
    planned.after_all = before_[id].all;
    std::map<int, std::vector<int>> by_group;
    for (int from : before_[id].nodes) {
      if (IsCross(from, id)) by_group[plan_.nodes[from].group].push_back(from);
    }
    for (auto& [group, nodes] : by_group) {
      ++plan_.waits;
      const bool by_event = nodes.size() == 1 && !facts_[id].changes_state;
      for (int from : nodes) {
        NodePlan::Record& record = plan_.nodes[from].record;
        record = std::max(record, by_event ? NodePlan::Record::kEvent
                                           : NodePlan::Record::kPosition);
      }
      planned.waits.push_back({group, std::move(nodes), by_event});
    }
  }

  // A node's latest input is the one that the longest path leads through.
  void FindStarts() {
    struct Last {
      int depth = 0;  // launches on the longest path
      std::vector<bool> groups;
    };
    std::vector<Last> lasts(graph_.num_node_ids());
    for (const Node* node : order_) {
      const int id = node->id();
      const int group = plan_.nodes[id].group;
      Last last;
      last.groups.resize(options_.group_count);
      for (const Edge* edge : node->in_edges()) {
        const Last& from = lasts[edge->src()->id()];
        if (from.depth < last.depth || from.depth == 0) continue;
        if (from.depth > last.depth) {
          last.depth = from.depth;
          last.groups.assign(options_.group_count, false);
        }
        for (int i = 0; i < options_.group_count; ++i) {
          if (from.groups[i]) last.groups[i] = true;
        }
      }
      if (HandsOnOnly(*node) || !facts_[id].launched) {
        lasts[id] = std::move(last);
        continue;
      }
      plan_.nodes[id].starts = group != options_.caller_group &&
                               (last.depth == 0 || !last.groups[group]);
      lasts[id].depth = last.depth + 1;
      lasts[id].groups.resize(options_.group_count);
      lasts[id].groups[group] = true;
    }
  }

  const Graph& graph_;
  const NodePlanOptions& options_;
  std::vector<NodeFacts> facts_;
  std::vector<Node*> order_;
  bool has_dead_ = false;
  std::vector<Before> before_;
  NodePlan plan_;
};

}  // namespace

absl::StatusOr<NodePolicy> PolicyOf(const Node& node,
                                    const NodePlanOptions& options) {
  NodePolicy policy;
  policy.policy = options.policy;
  policy.groups = options.group_count;
  policy.measured = options.measure;
  std::string text;
  if (TryGetNodeAttr(node.attrs(), kStreamPolicyAttr, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, ':');
    const std::optional<Policy> named = PolicyOfName(parts[0]);
    int groups = 0;
    if (!named || parts.size() > 3 ||
        (parts.size() > 1 &&
         (!absl::SimpleAtoi(parts[1], &groups) || groups < 0)) ||
        (parts.size() > 2 && parts[2] != "always")) {
      return absl::InvalidArgumentError(
          absl::StrCat("Node ", FormatNodeForError(node), " (",
                       node.type_string(), ") has the stream policy \"", text,
                       "\", which is not POLICY:GROUPS:always"));
    }
    policy.policy = *named;
    if (groups > 0) policy.groups = std::min(groups, options.group_count);
    policy.measured &= parts.size() < 3;
  }
  if (policy.policy == Policy::kCost) policy.policy = options.guess.cost_policy;
  if (!options.guess.split && policy.measured) policy.policy = Policy::kNone;
  return policy;
}

const char* NameOf(NodePlan::Why why) {
  static constexpr const char* kNames[] = {
      "", "leader", "file", "scope", "propagated", "policy", "default"};
  return kNames[static_cast<int>(why)];
}

absl::StatusOr<NodePlan> MakeNodePlan(
    const Graph& graph, const NodePlanOptions& options,
    const std::function<NodeFacts(const Node&)>& facts_of) {
  return Planner(graph, options, facts_of).Make();
}

}  // namespace tensorflow::multistream
