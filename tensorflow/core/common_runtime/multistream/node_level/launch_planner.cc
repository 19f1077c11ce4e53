// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/launch_planner.h"

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/node_level/plan_report.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

// TensorFlow's executor runs all ready inexpensive kernels in one thread, and
// treats every GPU kernel as inexpensive, so one thread would launch all
// branches. An expensive kernel gets another thread, which then runs the nodes
// that the kernel makes ready. OpKernel has no setter for this, but an explicit
// instantiation may name a private member.
template <bool OpKernel::*member>
struct ExpensiveMember {
  friend void SetExpensive(OpKernel* kernel, bool expensive) {
    kernel->*member = expensive;
  }
};
void SetExpensive(OpKernel* kernel, bool expensive);
template struct ExpensiveMember<&OpKernel::expensive_>;

namespace {

// If a node of `plan` has its group from the file, logs the file's summary,
// once per process.
void LogStreamFileOnce(const StreamFile& file, const NodePlan& plan) {
  static std::atomic<bool> logged{false};
  for (const NodePlan::Node& node : plan.nodes) {
    if (node.why != NodePlan::Why::kFile) continue;
    if (!logged.exchange(true)) {
      LOG(INFO) << "Stream groups from a file:\n" << file.Summary();
    }
    return;
  }
}

}  // namespace

void LaunchPlanner::SetGraph(
    const Graph& graph, absl::flat_hash_map<std::string, OpKernel*> kernels) {
  kernels_ = std::move(kernels);
  graph_ = std::make_unique<Graph>(graph.flib_def());
  graph_->Copy(graph);
  gets_lists_ = absl::c_any_of(graph_->op_nodes(), [this](const Node* node) {
    return (node->IsArg() || node->IsRecv() || IsCall(node->def(), library_)) &&
           absl::c_linear_search(node->output_types(), DT_VARIANT);
  });
}

absl::StatusOr<bool> LaunchPlanner::HasNodesToTune() const {
  for (const Node* node : graph_->op_nodes()) {
    TF_ASSIGN_OR_RETURN(const NodePolicy policy,
                        PolicyOf(*node, PlanOptions(0)));
    if (policy.policy != Policy::kNone && policy.measured) return true;
  }
  return false;
}

NodePlanOptions LaunchPlanner::PlanOptions(int caller_group) const {
  NodePlanOptions options;
  options.group_count = streams_.groups;
  options.caller_group = caller_group;
  options.reduce = options_.reduce_stream_wait;
  options.propagate = options_.forward_propagation;
  options.file = file_;
  options.policy = streams_.policy;
  options.measure = options_.measure;
  return options;
}

absl::StatusOr<std::shared_ptr<const Launches>> LaunchPlanner::Plan(
    int caller_group, const PlanGuess& guess) const {
  NodePlanOptions options = PlanOptions(caller_group);
  options.guess = guess;
  options.cost_us = [this](const Node& node) -> std::optional<double> {
    auto kernel = kernels_.find(node.name());
    if (kernel == kernels_.end()) return std::nullopt;
    return profile_.CostOf(kernel->second);
  };
  TF_ASSIGN_OR_RETURN(const NodePlan plan,
                      MakeNodePlan(*graph_, options, [this](const Node& node) {
                        return FactsOf(node);
                      }));
  if (file_ != nullptr) LogStreamFileOnce(*file_, plan);
  auto launches = std::make_shared<Launches>();
  std::vector<int> slot_of(plan.nodes.size(), -1);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].record == NodePlan::Record::kNothing) continue;
    slot_of[i] = launches->slots++;
  }
  for (const Node* node : graph_->op_nodes()) {
    auto kernel = kernels_.find(node->name());
    if (kernel == kernels_.end()) continue;
    const NodePlan::Node& planned = plan.nodes[node->id()];
    Launch& launch = launches->by_kernel[kernel->second];
    static_cast<NodePlan::Node&>(launch) = planned;
    launch.traits = TraitsOf(*node, *kernel->second, plan);
    for (NodePlan::Wait& wait : launch.waits) {
      for (int& id : wait.nodes) id = slot_of[id];
    }
    launch.slot = slot_of[node->id()];
    // The next executor reads this when it is made.
    if (caller_group == 0) {
      SetExpensive(kernel->second, planned.starts || MayBlock(*node));
    }
  }
  for (int i = 0; i < streams_.groups; ++i) {
    if (!plan.groups_used[i]) continue;
    launches->groups.push_back(i);
  }
  VLOG(1) << "Node level: " << plan.waits << " waits, " << plan.waits_left_out
          << " left out, " << launches->groups.size() << " groups";
  return launches;
}

void LaunchPlanner::AddToSavedPlan(const Launches& launches) const {
  for (const auto& [name, kernel] : kernels_) {
    auto launch = launches.by_kernel.find(kernel);
    if (launch != launches.by_kernel.end()) {
      SavedPlan::Add(name, launch->second.group);
    }
  }
}

NodeFacts LaunchPlanner::FactsOf(const Node& node) const {
  NodeFacts facts;
  facts.needs_leader = !LeaderReason(node, library_).empty();
  facts.keeps_scratch = KeepsScratch(node.type_string());
  auto kernel = kernels_.find(node.name());
  if (kernel == kernels_.end()) return facts;
  facts.changes_state = MayChangeState(*kernel->second, library_);
  facts.launched =
      node.type_string() != "NoOp" && kernel->second->const_tensor() == nullptr;
  // TensorFlow only guesses where a call's results are. On an emulated GPU,
  // outputs that a kernel puts in host memory still belong to a group.
  if (IsCall(node.def(), library_) || is_emulated_) return facts;
  for (MemoryType type : kernel->second->output_memory_types()) {
    facts.on_host.push_back(type == HOST_MEMORY);
  }
  return facts;
}

bool LaunchPlanner::MayBlock(const Node& node) const {
  for (DataType type : node.input_types()) {
    if (type == DT_RESOURCE || IsRefType(type)) return false;
  }
  return !LeaderReason(node, library_).empty();
}

OpTraits LaunchPlanner::TraitsOf(const Node& node, const OpKernel& kernel,
                                 const NodePlan& plan) const {
  OpTraits traits;
  traits.changes_state = MayChangeState(kernel, library_);
  // A step with a list that it holds copies the list at each change.
  const bool of_several = absl::c_count(plan.groups_used, true) > 1 ||
                          (streams_.groups > 1 && gets_lists_);
  for (DataType type : kernel.input_types()) {
    traits.keeps_inputs |= type == DT_RESOURCE;
    traits.takes_lists |= type == DT_VARIANT && of_several;
  }
  traits.keeps_inputs &= !LeaderReason(node, library_).empty();
  return traits;
}

}  // namespace tensorflow::multistream
