// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_graph.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

using Output = PieceLevels::Output;
using PieceId = PieceLevels::PieceId;

PieceBorder BorderOf(const Graph& graph, const PieceLevels& levels, PieceId of,
                     const std::vector<int>& nodes) {
  PieceBorder border;
  absl::flat_hash_set<Output> taken, given;
  for (const int id : nodes) {
    const Node* node = graph.FindNodeId(id);
    std::vector<const Edge*> edges(node->num_inputs());
    if (!node->input_edges(&edges).ok()) continue;
    for (const Edge* edge : edges) {
      const int from = edge->src()->id();
      if (levels.PieceOf(from) == of || levels.IsCopied(from)) continue;
      const Output output(from, edge->src_output());
      if (taken.insert(output).second) border.takes.push_back(output);
    }
    for (const Edge* edge : node->out_edges()) {
      if (edge->IsControlEdge() || !edge->dst()->IsOp() ||
          levels.PieceOf(edge->dst()->id()) == of) {
        continue;
      }
      const Output output(id, edge->src_output());
      if (given.insert(output).second) border.gives.push_back(output);
    }
  }
  absl::c_sort(border.gives);
  return border;
}

absl::StatusOr<std::unique_ptr<Graph>> GraphOfPiece(
    const Graph& whole, const PieceLevels& levels, const std::string& name,
    PieceId of, const std::vector<int>& nodes, const PieceBorder& border,
    const std::set<Output>& decide) {
  auto graph = std::make_unique<Graph>(whole.flib_def());
  graph->set_versions(whole.versions());
  absl::flat_hash_map<int, Node*> made;
  const std::string& device =
      whole.FindNodeId(nodes[0])->assigned_device_name();
  absl::flat_hash_map<Output, Node*> arguments;
  for (size_t i = 0; i < border.takes.size(); ++i) {
    const Output& output = border.takes[i];
    NodeDef def = ArgumentOfPiece(levels.TypeOf(output), static_cast<int>(i),
                                  levels.IsOnHost(output));
    def.set_name(absl::StrCat("_multi_stream_", name, "_argument_", i));
    if (decide.count(output) > 0) AddNodeAttr(kDecidesAttr, true, &def);
    TF_ASSIGN_OR_RETURN(arguments[output],
                        AddAssigned(std::move(def), device, graph.get()));
  }
  for (const int id : nodes) {
    const Node* node = whole.FindNodeId(id);
    TF_ASSIGN_OR_RETURN(
        made[id],
        AddAssigned(node->def(), node->assigned_device_name(), graph.get()));
  }
  for (const int id : nodes) {
    const Node* node = whole.FindNodeId(id);
    for (const Edge* edge : node->in_edges()) {
      const int from = edge->src()->id();
      if (edge->IsControlEdge()) {
        if (levels.PieceOf(from) == of && edge->src()->IsOp()) {
          graph->AddControlEdge(made[from], made[id]);
        }
        continue;
      }
      if (const auto argument = arguments.find({from, edge->src_output()});
          argument != arguments.end()) {
        graph->AddEdge(argument->second, 0, made[id], edge->dst_input());
        continue;
      }
      if (levels.IsCopied(from) && made[from] == nullptr) {
        // With its name, so that executors share the kernel.
        NodeDef def = edge->src()->def();
        def.clear_input();
        TF_ASSIGN_OR_RETURN(
            made[from],
            AddAssigned(std::move(def), edge->src()->assigned_device_name(),
                        graph.get()));
      }
      graph->AddEdge(made[from], edge->src_output(), made[id],
                     edge->dst_input());
    }
  }
  for (size_t i = 0; i < border.gives.size(); ++i) {
    const Output& output = border.gives[i];
    NodeDef def = ResultOfPiece(levels.TypeOf(output), static_cast<int>(i),
                                levels.IsOnHost(output));
    def.set_name(absl::StrCat("_multi_stream_", name, "_result_", i));
    def.add_input(whole.FindNodeId(output.first)->name());
    TF_ASSIGN_OR_RETURN(Node * result,
                        AddAssigned(std::move(def), device, graph.get()));
    graph->AddEdge(made[output.first], output.second, result, 0);
  }
  FixupSourceAndSinkEdges(graph.get());
  return graph;
}

}  // namespace tensorflow::multistream
