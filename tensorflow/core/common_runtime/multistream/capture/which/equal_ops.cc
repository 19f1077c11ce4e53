// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/equal_ops.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"

namespace tensorflow::multistream {
namespace {

// Larger attributes, as constants have, are not compared.
constexpr size_t kMostBytes = 1024;

bool IsRead(const Node& node) { return node.type_string() == "ReadVariableOp"; }

// Whether the values of the node's outputs depend on its inputs alone.
bool IsPure(const Node& node) {
  if (!node.IsOp() || node.op_def().is_stateful() || node.num_outputs() == 0 ||
      absl::StartsWith(node.type_string(), "_")) {
    return false;
  }
  const auto moves = [](DataType type) {
    return IsRefType(type) || type == DT_RESOURCE || type == DT_VARIANT;
  };
  return absl::c_none_of(node.input_types(), moves) &&
         absl::c_none_of(node.output_types(), moves);
}

class Merger {
 public:
  explicit Merger(const Graph& graph)
      : graph_(std::make_unique<Graph>(graph.flib_def())) {
    graph_->Copy(graph);
  }

  std::unique_ptr<Graph> Run() {
    // The order is found along edges from the source, which nodes may lack.
    FixupSourceAndSinkEdges(graph_.get());
    FindReads();
    for (const Node* node : graph_->op_nodes()) {
      for (const Node* it : WithSummands(*node)) in_sums_.insert(it);
    }
    std::vector<Node*> order;
    GetReversePostOrder(*graph_, &order, NodeComparatorID());
    absl::flat_hash_map<std::string, Node*> first;
    bool merged = false;
    for (Node* node : order) {
      const std::string key = KeyOf(*node);
      if (key.empty()) continue;
      const auto [found, is_first] = first.emplace(key, node);
      if (is_first) continue;
      Replace(node, found->second);
      merged = true;
    }
    if (!merged) return nullptr;
    FixupSourceAndSinkEdges(graph_.get());
    return std::move(graph_);
  }

 private:
  // Finds the reads that come before all changes of their variable.
  void FindReads() {
    for (const Node* source : graph_->op_nodes()) {
      if (!source->IsArg() || source->output_type(0) != DT_RESOURCE) continue;
      std::vector<const Node*> reads, others;
      for (const Edge* edge : source->out_edges()) {
        const Node* user = edge->dst();
        if (edge->IsControlEdge() || !user->IsOp()) continue;
        if (IsRead(*user)) reads.push_back(user);
        if (!OnlyReads(user->type_string())) others.push_back(user);
      }
      if (reads.size() < 2) continue;
      absl::flat_hash_set<const Node*> early(reads.begin(), reads.end());
      for (const Node* other : others) {
        absl::flat_hash_set<const Node*> before;
        WalkFinds(*other, [&](const Node& node, auto go_to) {
          before.insert(&node);
          for (const Edge* edge : node.in_edges()) go_to(edge->src());
          return false;
        });
        absl::erase_if(
            early, [&](const Node* read) { return !before.contains(read); });
      }
      early_reads_.insert(early.begin(), early.end());
    }
  }

  // Nodes with the same key compute the same; "" for a node that stays.
  std::string KeyOf(const Node& node) const {
    // A tensor that is used twice is none that an AddN takes over.
    if (in_sums_.contains(&node)) return "";
    if (!IsPure(node) && !early_reads_.contains(&node)) return "";
    NodeDef def = node.def();
    def.clear_name();
    def.clear_input();
    def.clear_experimental_debug_info();
    def.mutable_attr()->erase("_class");
    if (def.ByteSizeLong() > kMostBytes) return "";
    std::string key;
    if (!SerializeToStringDeterministic(def, &key)) return "";
    absl::StrAppend(&key, node.assigned_device_name());
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Edge* edge;
      if (!node.input_edge(i, &edge).ok()) return "";
      absl::StrAppend(&key, ";", edge->src()->id(), ":", edge->src_output());
    }
    return key;
  }

  // Nodes after `node` now come after `first`, and after all that `node` came
  // after. `first` is earlier in the order, so that edges still lead forward.
  void Replace(Node* node, Node* first) {
    const std::vector<const Edge*> out(node->out_edges().begin(),
                                       node->out_edges().end());
    for (const Edge* edge : out) {
      Node* to = edge->dst();
      for (const Edge* before : node->in_edges()) {
        if (before->IsControlEdge()) graph_->AddControlEdge(before->src(), to);
      }
      if (edge->IsControlEdge()) {
        graph_->AddControlEdge(first, to);
        continue;
      }
      const int output = edge->src_output(), input = edge->dst_input();
      graph_->RemoveEdge(edge);
      graph_->AddEdge(first, output, to, input);
    }
    graph_->RemoveNode(node);
  }

  std::unique_ptr<Graph> graph_;
  absl::flat_hash_set<const Node*> early_reads_;
  absl::flat_hash_set<const Node*> in_sums_;  // sums.h
};

}  // namespace

std::unique_ptr<Graph> WithoutEqualOps(const Graph& graph,
                                       std::unique_ptr<Graph> recorded) {
  const Graph& all = recorded == nullptr ? graph : *recorded;
  bool changes = false;
  for (const Node* node : all.op_nodes()) {
    if (node->IsControlFlow()) return recorded;
    changes |= ChangesVariables(node->type_string());
  }
  if (!changes) return recorded;
  std::unique_ptr<Graph> merged = Merger(all).Run();
  return merged == nullptr ? std::move(recorded) : std::move(merged);
}

}  // namespace tensorflow::multistream
