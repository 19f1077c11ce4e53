// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Drawn graphs and the groups that a policy gives, for tests of policies.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {

// Takes and returns anything.
REGISTER_OP("NodePolicyTestOp")
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0");

using Group = std::optional<int>;
using Nodes = std::vector<Node*>;
using Outputs = std::vector<NodeBuilder::NodeOut>;

class NodePolicyTest : public ::testing::Test {
 protected:
  NodePolicyTest() : graph_(OpRegistry::Global()) {
    options_.policy = Policy::kFullGraph;
    options_.groups = 4;
  }

  Node* Add(NodeBuilder builder, const Nodes& controls = {}) {
    Node* node = nullptr;
    const absl::Status status =
        builder.ControlInputs(controls).Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  Node* Op(const std::string& name, const Outputs& inputs = {},
           DataType type = DT_FLOAT) {
    return Add(NodeBuilder(name, "NodePolicyTestOp")
                   .Input(inputs)
                   .Attr("Tout", DataTypeVector({type})));
  }
  // `length` nodes: name1, name2 and so on. The last.
  Node* Chain(const std::string& name, Node* from, int length) {
    for (int i = 1; i <= length; ++i) from = Op(absl::StrCat(name, i), {from});
    return from;
  }
  Node* HostOp(const std::string& name, const Outputs& inputs = {},
               DataType type = DT_FLOAT) {
    on_host_.insert(name);
    return Op(name, inputs, type);
  }
  Node* FixedOp(const std::string& name, int group,
                const Outputs& inputs = {}) {
    fixed_[name] = group;
    return Op(name, inputs);
  }
  Node* Const(const std::string& name, const Tensor& value = Tensor(1.0f)) {
    not_launched_.insert(name);
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", value.dtype())
                   .Attr("value", value));
  }
  Node* Identity(const std::string& name, NodeBuilder::NodeOut input) {
    return Add(NodeBuilder(name, "Identity").Input(input));
  }
  Node* Reshape(const std::string& name, Node* input) {
    return Add(NodeBuilder(name, "Reshape")
                   .Input(input)
                   .Input(Const(name + "_shape", Tensor(1))));
  }
  Node* Handle(const std::string& name) {
    return Add(NodeBuilder(name, "VarHandleOp")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({})));
  }
  Node* Read(const std::string& name) {
    return Add(NodeBuilder(name, "ReadVariableOp")
                   .Input(Handle(name + "_handle"))
                   .Attr("dtype", DT_FLOAT));
  }
  Node* Ids(const std::string& name, const Outputs& inputs = {}) {
    return Op(name, inputs, DT_INT32);
  }
  // Of a table of its own.
  Node* Lookup(const std::string& name, Node* ids) {
    return Add(NodeBuilder(name, "ResourceGather")
                   .Input(Handle(name + "_table"))
                   .Input(ids)
                   .Attr("dtype", DT_FLOAT));
  }
  Node* Gather(const std::string& name, Node* table, Node* ids) {
    return Add(NodeBuilder(name, "GatherV2")
                   .Input(table)
                   .Input(ids)
                   .Input(Const(name + "_axis", Tensor(0))));
  }
  Node* MatMul(const std::string& name, Node* a, Node* b) {
    return Add(NodeBuilder(name, "MatMul").Input(a).Input(b));
  }
  Node* Switch(const std::string& name, NodeBuilder::NodeOut input) {
    return Add(NodeBuilder(name, "Switch")
                   .Input(input)
                   .Input(HostOp(name + "_if", {}, DT_BOOL)));
  }
  Node* Merge(const std::string& name, Node* a, Node* b) {
    return Add(NodeBuilder(name, "Merge").Input(Outputs{a, b}));
  }
  Node* Enter(const std::string& name, Node* input) {
    return Add(
        NodeBuilder(name, "Enter").Input(input).Attr("frame_name", name));
  }

  //   from --> Enter --> Merge --> Switch --> Exit
  //                        ^          '--> body
  //                        '-- NextIteration <--'
  struct Loop {
    Node* exit;
    Node* body;   // its first node
    Node* merge;  // where Close takes the last to
  };
  Loop Open(const std::string& name, Node* from) {
    Node* enter = Enter(name + "_enter", from);
    Node* merge = Merge(name + "_merge", enter, enter);
    Node* condition = Add(NodeBuilder(name + "_condition", "LoopCond")
                              .Input(HostOp(name + "_if", {merge}, DT_BOOL)));
    Node* split = Add(
        NodeBuilder(name + "_switch", "Switch").Input(merge).Input(condition));
    Loop loop;
    loop.exit = Add(NodeBuilder(name + "_exit", "Exit").Input(split, 0));
    loop.body = Op(name + "_body", {{split, 1}});
    loop.merge = merge;
    return loop;
  }
  void Close(const std::string& name, const Loop& loop, Node* last) {
    Node* next = Add(NodeBuilder(name + "_next", "NextIteration").Input(last));
    ASSERT_TRUE(graph_.UpdateEdge(next, 0, loop.merge, 1).ok());
  }

  //   from --> NAMEa1 --> NAMEa2 --> NAMEjoin
  //       '--> NAMEb1 --> NAMEb2 ----'
  Node* Fork(const std::string& name, NodeBuilder::NodeOut from) {
    std::vector<Node*> ends;
    for (const char* branch : {"a", "b"}) {
      Node* first = Op(absl::StrCat(name, branch, "1"), {from});
      ends.push_back(Op(absl::StrCat(name, branch, "2"), {first}));
    }
    return Op(name + "join", {ends[0], ends[1]});
  }
  void ExpectForked(const std::string& name) {
    EXPECT_TRUE(Of(name + "a1").has_value()) << name;
    EXPECT_EQ(Of(name + "a1"), Of(name + "a2")) << name;
    EXPECT_EQ(Of(name + "b1"), Of(name + "b2")) << name;
    EXPECT_NE(Of(name + "a1"), Of(name + "b1")) << name;
  }
  void ExpectNone(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      EXPECT_EQ(Of(name), std::nullopt) << name;
    }
  }

  void Place() {
    FixupSourceAndSinkEdges(&graph_);
    std::vector<Node*> order;
    GetReversePostOrder(
        graph_, &order, NodeComparatorID(),
        [](const Edge& edge) { return !edge.src()->IsNextIteration(); });
    std::vector<NodeForPolicy> nodes(graph_.num_node_ids());
    for (const Node* node : order) {
      if (!node->IsOp()) continue;
      NodeForPolicy& ours = nodes[node->id()];
      ours.launched = not_launched_.count(node->name()) == 0;
      ours.on_host = on_host_.count(node->name()) > 0;
      auto fixed = fixed_.find(node->name());
      if (fixed != fixed_.end()) ours.group = fixed->second;
      for (const Edge* edge : node->in_edges()) {
        const Node* from = edge->src();
        if (!from->IsOp() || not_launched_.count(from->name()) > 0) continue;
        const bool waits =
            edge->IsControlEdge() ||
            (on_host_.count(from->name()) == 0 &&
             from->output_type(edge->src_output()) != DT_RESOURCE);
        if (waits) ours.before.push_back(from->id());
      }
    }
    groups_ = GroupsByPolicy(graph_, order, nodes, options_);
    ASSERT_EQ(groups_.size(), graph_.num_node_ids());
  }
  Group Of(const Node* node) const { return groups_[node->id()]; }
  Group Of(const std::string& name) const {
    for (const Node* node : graph_.op_nodes()) {
      if (node->name() == name) return Of(node);
    }
    ADD_FAILURE() << "no node " << name;
    return {};
  }
  // Of the nodes that have one.
  std::set<int> GroupsUsed() const {
    std::set<int> used;
    for (const Group& group : groups_) {
      if (group.has_value()) used.insert(*group);
    }
    return used;
  }

  Graph graph_;
  NodePolicyOptions options_;
  std::set<std::string> not_launched_, on_host_;
  std::map<std::string, int> fixed_;
  std::vector<Group> groups_;  // by id
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_POLICY_FIXTURE_H_
