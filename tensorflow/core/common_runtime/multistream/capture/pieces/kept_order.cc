// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/kept_order.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

// As of PieceLevels::Kind::kCopied.
bool IsCopied(const Node& node) {
  return node.IsConstant() || node.type_string() == "VarHandleOp";
}

// What is only known in loops' next iterations orders nothing in this one.
bool Orders(const Edge& edge) {
  return edge.src()->IsOp() && edge.dst()->IsOp() &&
         !edge.src()->IsNextIteration();
}

bool OnlyReads(const Node& node) {
  const std::string& op = node.type_string();
  return op == "ReadVariableOp" || op == "VariableShape" ||
         op == "VarIsInitializedOp" || absl::StartsWith(op, "ResourceGather");
}

// The resources that a handle may be of, by names that other handles of these
// have, too: a branch may choose one.
std::set<std::string> ResourcesOf(const Edge& handle) {
  std::set<std::string> found;
  std::set<const Node*> seen;
  std::vector<const Edge*> next = {&handle};
  while (!next.empty()) {
    const Edge* edge = next.back();
    next.pop_back();
    const Node& node = *edge->src();
    if (HandsValueOn(node)) {
      if (!seen.insert(&node).second) continue;
      for (const Edge* in : node.in_edges()) {
        if (!in->IsControlEdge() &&
            node.input_type(in->dst_input()) == DT_RESOURCE) {
          next.push_back(in);
        }
      }
      continue;
    }
    std::string container, name;
    if (node.type_string() == "VarHandleOp" &&
        TryGetNodeAttr(node.attrs(), "container", &container) &&
        TryGetNodeAttr(node.attrs(), "shared_name", &name)) {
      found.insert(absl::StrCat("variable ", container, "/", name));
    } else {
      found.insert(
          absl::StrCat("output ", edge->src_output(), " of ", node.name()));
    }
  }
  return found;
}

// Sets of the graph's uses of resources, by the number of each use's op.
using Bits = std::vector<uint64_t>;
bool Has(const Bits& bits, size_t i) { return bits[i / 64] >> (i % 64) & 1; }
void Add(size_t i, Bits* bits) { (*bits)[i / 64] |= uint64_t{1} << (i % 64); }
void AddAll(const Bits& from, Bits* to) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] |= from[i];
}
bool Meet(const Bits& a, const Bits& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if ((a[i] & b[i]) != 0) return true;
  }
  return false;
}

class Keeper {
 public:
  explicit Keeper(Graph* graph) : graph_(*graph) {}

  void Run() {
    if (!FindUses() || !Sort()) return;
    FindBefore();
    FindLost();
    if (lost_after_.empty()) return;
    FindLostFrom();
    std::set<std::pair<Node*, Node*>> kept;
    for (Node* node : graph_.op_nodes()) {
      if (!IsCopied(*node)) continue;
      const std::set<Node*> all_before = BeforeCopies(*node);
      for (Node* after : node->out_nodes()) {
        // A Merge runs with any one of its inputs.
        if (!after->IsOp() || IsCopied(*after) || after->IsMerge()) continue;
        for (Node* before : all_before) {
          if (Meet(lost_from_[after->id()], before_[before->id()])) {
            kept.insert({before, after});
          }
        }
      }
    }
    for (const auto& [before, after] : kept) {
      graph_.AddControlEdge(before, after);
    }
  }

 private:
  struct Use {
    std::string resource;
    const Node* node;
    bool changes;
  };

  // False if no order can be lost.
  bool FindUses() {
    bool changes = false, copies_wait = false;
    for (const Node* node : graph_.op_nodes()) {
      copies_wait |= IsCopied(*node) && !BeforeCopies(*node).empty();
      if (HandsValueOn(*node) || node->IsRetval() || node->IsSend()) continue;
      for (const Edge* edge : node->in_edges()) {
        if (edge->IsControlEdge() ||
            node->input_type(edge->dst_input()) != DT_RESOURCE) {
          continue;
        }
        number_.try_emplace(node, number_.size());
        for (const std::string& resource : ResourcesOf(*edge)) {
          uses_.push_back({resource, node, !OnlyReads(*node)});
          changes |= uses_.back().changes;
        }
      }
    }
    return changes && copies_wait;
  }

  // What comes right before the node, or before copied nodes before it.
  static std::set<Node*> BeforeCopies(const Node& node) {
    std::set<Node*> before;
    std::vector<const Node*> next = {&node};
    std::set<const Node*> seen = {&node};
    while (!next.empty()) {
      const Node* at = next.back();
      next.pop_back();
      for (const Edge* edge : at->in_edges()) {
        if (!Orders(*edge)) continue;
        if (!IsCopied(*edge->src())) {
          before.insert(edge->src());
        } else if (seen.insert(edge->src()).second) {
          next.push_back(edge->src());
        }
      }
    }
    return before;
  }

  bool Sort() {
    std::vector<int> missing(graph_.num_node_ids());
    std::vector<Node*> ready;
    int nodes = 0;
    for (Node* node : graph_.op_nodes()) {
      ++nodes;
      for (const Edge* edge : node->in_edges()) {
        missing[node->id()] += Orders(*edge);
      }
      if (missing[node->id()] == 0) ready.push_back(node);
    }
    while (!ready.empty()) {
      Node* node = ready.back();
      ready.pop_back();
      order_.push_back(node);
      for (const Edge* edge : node->out_edges()) {
        if (Orders(*edge) && --missing[edge->dst()->id()] == 0) {
          ready.push_back(edge->dst());
        }
      }
    }
    return static_cast<int>(order_.size()) == nodes;
  }

  // Finds which uses come before each node: all, and those of which copies
  // keep the order.
  void FindBefore() {
    const Bits none((number_.size() + 63) / 64);
    before_.assign(graph_.num_node_ids(), none);
    still_before_.assign(graph_.num_node_ids(), none);
    for (const Node* node : order_) {
      const int id = node->id();
      for (const Edge* edge : node->in_edges()) {
        if (!Orders(*edge)) continue;
        const int from = edge->src()->id();
        AddAll(before_[from], &before_[id]);
        if (!IsCopied(*node)) AddAll(still_before_[from], &still_before_[id]);
      }
      const auto number = number_.find(node);
      if (number == number_.end()) continue;
      Add(number->second, &before_[id]);
      Add(number->second, &still_before_[id]);
    }
  }

  // Finds the uses that have to come after others and no longer do.
  void FindLost() {
    absl::flat_hash_map<std::string, std::vector<const Use*>> by_resource;
    for (const Use& use : uses_) by_resource[use.resource].push_back(&use);
    for (const auto& [resource, uses] : by_resource) {
      for (const Use* use : uses) {
        for (const Use* first : uses) {
          const size_t number = number_.at(first->node);
          if ((!use->changes && !first->changes) ||
              !Has(before_[use->node->id()], number) ||
              Has(still_before_[use->node->id()], number)) {
            continue;
          }
          Bits& lost =
              lost_after_
                  .try_emplace(use->node, Bits((number_.size() + 63) / 64))
                  .first->second;
          Add(number, &lost);
        }
      }
    }
  }

  // Finds after which uses a node has to come, as something at or after the
  // node has lost their order.
  void FindLostFrom() {
    lost_from_.assign(graph_.num_node_ids(), Bits((number_.size() + 63) / 64));
    for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
      Bits& lost = lost_from_[(*node)->id()];
      if (const auto own = lost_after_.find(*node); own != lost_after_.end()) {
        AddAll(own->second, &lost);
      }
      for (const Edge* edge : (*node)->out_edges()) {
        if (Orders(*edge)) AddAll(lost_from_[edge->dst()->id()], &lost);
      }
    }
  }

  Graph& graph_;
  std::vector<Use> uses_;
  absl::flat_hash_map<const Node*, size_t> number_;  // of nodes with uses
  std::vector<const Node*> order_;
  std::vector<Bits> before_, still_before_;  // by node id
  absl::flat_hash_map<const Node*, Bits> lost_after_;
  std::vector<Bits> lost_from_;  // by node id
};

}  // namespace

void KeepOrderOfResources(Graph* graph) { Keeper(graph).Run(); }

}  // namespace tensorflow::multistream
