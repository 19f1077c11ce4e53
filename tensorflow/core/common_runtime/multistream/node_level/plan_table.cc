// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/plan_table.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/function_def_utils.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow {
namespace multistream {

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
  TF_ASSIGN_OR_RETURN(const NodePlan plan,
                      MakeNodePlan(*graph, options, [&](const Node& node) {
                        NodeFacts facts;
                        facts.leader_reason = LeaderReason(node, &library);
                        facts.keeps_scratch = KeepsScratch(node.type_string());
                        return facts;
                      }));
  std::string table;
  for (const Node* node : graph->op_nodes()) {
    const NodePlan::Node& planned = plan.nodes[node->id()];
    if (planned.why == "scope" || planned.why == "default") continue;
    absl::StrAppend(&table, node->name(), "\t", planned.group, "\t",
                    planned.why, "\n");
  }
  return table;
}

}  // namespace multistream
}  // namespace tensorflow
