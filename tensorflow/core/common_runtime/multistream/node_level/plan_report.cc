// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_report.h"

#include <atomic>
#include <map>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

struct Captured {
  std::atomic<bool> on{false};
  absl::Mutex mu;
  std::map<std::string, std::set<int>> groups ABSL_GUARDED_BY(mu);  // by node
};

Captured* Get() {
  static auto* captured = new Captured;
  return captured;
}

}  // namespace

absl::StatusOr<std::string> PlanTable(const GraphDef& graph_def,
                                      const std::string& function,
                                      const NodePlanOptions& options) {
  const FunctionLibraryDefinition library(OpRegistry::Global(),
                                          graph_def.library());
  Graph main(library);
  std::unique_ptr<FunctionBody> body;
  const Graph* graph = &main;
  if (function.empty()) {
    GraphConstructorOptions construct;
    construct.allow_internal_ops = true;
    TF_RETURN_IF_ERROR(ConvertGraphDefToGraph(construct, graph_def, &main));
  } else {
    const FunctionDef* definition = library.Find(function);
    if (definition == nullptr) {
      return absl::NotFoundError(absl::StrCat("no function ", function));
    }
    TF_RETURN_IF_ERROR(
        FunctionDefToBodyHelper(*definition, AttrSlice(), &library, &body));
    graph = body->graph;
  }
  TF_ASSIGN_OR_RETURN(
      const NodePlan plan, MakeNodePlan(*graph, options, [&](const Node& node) {
        NodeFacts facts;
        facts.needs_leader = !LeaderReason(node, &library).empty();
        facts.keeps_scratch = KeepsScratch(node.type_string());
        return facts;
      }));
  std::string table;
  for (const Node* node : graph->op_nodes()) {
    const NodePlan::Node& planned = plan.nodes[node->id()];
    if (planned.why == NodePlan::Why::kScope ||
        planned.why == NodePlan::Why::kDefault) {
      continue;
    }
    absl::StrAppend(&table, node->name(), "\t", planned.group, "\t",
                    NameOf(planned.why));
    if (planned.why == NodePlan::Why::kLeader) {
      absl::StrAppend(&table, ": ", LeaderReason(*node, &library));
    }
    table += "\n";
  }
  return table;
}

void SavedPlan::Start() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  captured->groups.clear();
  captured->on.store(true, std::memory_order_release);
}

void SavedPlan::Stop() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  captured->on.store(false, std::memory_order_release);
  captured->groups.clear();
}

bool SavedPlan::IsOn() { return Get()->on.load(std::memory_order_acquire); }

void SavedPlan::Add(const std::string& node, int group) {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  // The step began before Stop.
  if (!captured->on.load(std::memory_order_acquire)) return;
  captured->groups[node].insert(group);
}

absl::StatusOr<std::string> SavedPlan::Lines() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  std::map<int, std::set<std::string>> by_group;
  for (const auto& [node, groups] : captured->groups) {
    if (groups.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node ", node, " has had the groups ", absl::StrJoin(groups, ", ")));
    }
    by_group[*groups.begin()].insert(node);
  }
  std::string lines;
  for (const auto& [group, nodes] : by_group) {
    for (const std::string& node : nodes) {
      absl::StrAppend(&lines, group, " ", node, "\n");
    }
  }
  return lines;
}

}  // namespace tensorflow::multistream
