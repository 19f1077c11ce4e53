// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/kept_order.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow::multistream {
namespace {

// What is only known in loops' next iterations orders nothing in this one.
bool Orders(const Edge& edge) {
  return edge.src()->IsOp() && edge.dst()->IsOp() &&
         !edge.src()->IsNextIteration();
}

// The resources that a handle may be of, by names that other handles of these
// have, too: a branch may choose one.
std::set<std::string> ResourcesOf(const Edge& handle) {
  std::set<std::string> found;
  const auto add = [&found](const Edge& edge) {
    const Node& node = *edge.src();
    std::string container, name;
    if (node.type_string() == "VarHandleOp" &&
        TryGetNodeAttr(node.attrs(), "container", &container) &&
        TryGetNodeAttr(node.attrs(), "shared_name", &name)) {
      found.insert(absl::StrCat("variable ", container, "/", name));
    } else {
      found.insert(
          absl::StrCat("output ", edge.src_output(), " of ", node.name()));
    }
  };
  if (!HandsValueOn(*handle.src())) {
    add(handle);
    return found;
  }
  WalkFinds(*handle.src(), [&add](const Node& node, auto go_to) {
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() ||
          node.input_type(edge->dst_input()) != DT_RESOURCE) {
        continue;
      }
      if (HandsValueOn(*edge->src())) {
        go_to(edge->src());
      } else {
        add(*edge);
      }
    }
    return false;
  });
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
    if (!FindUses()) return;
    GetReversePostOrder(
        graph_, &order_, NodeComparatorID(),
        [](const Edge& edge) { return !edge.src()->IsNextIteration(); });
    FindBefore();
    FindLost();
    if (lost_after_.empty()) return;
    FindLostFrom();
    std::set<std::pair<Node*, Node*>> kept;
    for (Node* node : graph_.op_nodes()) {
      if (!HasOwnCopies(*node)) continue;
      const std::set<Node*> all_before = BeforeCopies(*node);
      for (Node* after : node->out_nodes()) {
        // A Merge runs with any one of its inputs.
        if (!after->IsOp() || HasOwnCopies(*after) || after->IsMerge())
          continue;
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
      copies_wait |= HasOwnCopies(*node) && !BeforeCopies(*node).empty();
      if (HandsValueOn(*node) || node->IsRetval() || node->IsSend()) continue;
      for (const Edge* edge : node->in_edges()) {
        if (edge->IsControlEdge() ||
            node->input_type(edge->dst_input()) != DT_RESOURCE) {
          continue;
        }
        number_.try_emplace(node, number_.size());
        for (const std::string& resource : ResourcesOf(*edge)) {
          uses_.push_back({resource, node, !OnlyReads(node->type_string())});
          changes |= uses_.back().changes;
        }
      }
    }
    return changes && copies_wait;
  }

  // What comes right before the node, or before copied nodes before it.
  static std::set<Node*> BeforeCopies(const Node& node) {
    std::set<Node*> before;
    WalkFinds(node, [&before](const Node& at, auto go_to) {
      for (const Edge* edge : at.in_edges()) {
        if (!Orders(*edge)) continue;
        if (HasOwnCopies(*edge->src())) {
          go_to(edge->src());
        } else {
          before.insert(edge->src());
        }
      }
      return false;
    });
    return before;
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
        if (!HasOwnCopies(*node))
          AddAll(still_before_[from], &still_before_[id]);
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
  std::vector<Node*> order_;
  std::vector<Bits> before_, still_before_;  // by node id
  absl::flat_hash_map<const Node*, Bits> lost_after_;
  std::vector<Bits> lost_from_;  // by node id
};

}  // namespace

bool HasOwnCopies(const Node& node) {
  return node.IsConstant() || node.type_string() == "VarHandleOp";
}

void KeepOrderOfResources(Graph* graph) { Keeper(graph).Run(); }

}  // namespace tensorflow::multistream
