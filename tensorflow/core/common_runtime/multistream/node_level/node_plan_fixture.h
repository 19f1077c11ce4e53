// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Drawn graphs and what is planned for them, for tests of node plans.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {

// Takes and returns anything: a node's facts come from the test.
REGISTER_OP("NodePlanTestOp")
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0");

inline constexpr int kGroups = 4;

using Group = std::optional<int>;
using Nodes = std::vector<Node*>;
using Outputs = std::vector<NodeBuilder::NodeOut>;

class NodePlanTest : public ::testing::Test {
 protected:
  NodePlanTest() : graph_(OpRegistry::Global()) {
    options_.group_count = kGroups;
  }

  Node* Add(NodeBuilder builder, Group group = {}, const Nodes& controls = {}) {
    if (group.has_value()) builder.Attr(kStreamGroupAttr, *group);
    Node* node = nullptr;
    const absl::Status status =
        builder.ControlInputs(controls).Finalize(&graph_, &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  // With a float that is on the GPU.
  Node* Op(const std::string& name, Group group, const Outputs& inputs = {},
           const Nodes& controls = {}, DataType type = DT_FLOAT) {
    return Add(NodeBuilder(name, "NodePlanTestOp")
                   .Input(inputs)
                   .Attr("Tout", DataTypeVector({type})),
               group, controls);
  }
  Node* HostOp(const std::string& name, Group group, const Outputs& inputs = {},
               DataType type = DT_FLOAT) {
    facts_[name].on_host = {true};
    return Op(name, group, inputs, {}, type);
  }
  Node* NoOp(const std::string& name, const Nodes& controls) {
    facts_[name].launched = false;
    return Add(NodeBuilder(name, "NoOp"), {}, controls);
  }
  Node* Const(const std::string& name, const Nodes& controls) {
    facts_[name].launched = false;
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("value", Tensor(1.0f)),
               {}, controls);
  }
  // Nodes of group 1.
  Nodes Many(int count) {
    Nodes many;
    for (int i = 0; i < count; ++i) {
      many.push_back(Op(absl::StrCat("many_", i), 1));
    }
    return many;
  }
  Node* Send(const std::string& name, const std::string& op, Node* input,
             Group group) {
    return Add(Transfer(NodeBuilder(name, op).Input(input)), group);
  }
  Node* Recv(const std::string& name, const std::string& op, Group group) {
    return Add(Transfer(NodeBuilder(name, op).Attr("tensor_type", DT_FLOAT)),
               group);
  }
  Node* Arg(const std::string& name, Group group = {}) {
    return Add(NodeBuilder(name, "_Arg").Attr("T", DT_FLOAT).Attr("index", 0),
               group);
  }
  Node* Identity(const std::string& name, Group group, Node* input) {
    return Add(NodeBuilder(name, "Identity").Input(input), group);
  }
  Node* ReadVariable(const std::string& name, Group group,
                     const Nodes& controls = {}) {
    Node* handle = Add(NodeBuilder(name + "_handle", "VarHandleOp")
                           .Attr("dtype", DT_FLOAT)
                           .Attr("shape", TensorShape({})));
    return Add(NodeBuilder(name, "ReadVariableOp")
                   .Input(handle)
                   .Attr("dtype", DT_FLOAT),
               group, controls);
  }
  void AddSwitch(const std::string& name, Node* input) {
    Node* condition = HostOp(name + "_if", {}, {}, DT_BOOL);
    Add(NodeBuilder(name, "Switch").Input(input).Input(condition));
  }

  void UseFile(const std::string& contents, int groups = kGroups) {
    absl::StatusOr<StreamFile> file =
        ParseStreamFile(contents, "streams.txt", groups);
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
    options_.file = &*file_;
  }

  absl::Status TryPlan() {
    // As in every graph that an executor gets.
    FixupSourceAndSinkEdges(&graph_);
    absl::StatusOr<NodePlan> plan =
        MakeNodePlan(graph_, options_,
                     [this](const Node& node) { return facts_[node.name()]; });
    if (plan.ok()) plan_ = *std::move(plan);
    return plan.status();
  }
  void Plan() {
    const absl::Status status = TryPlan();
    ASSERT_TRUE(status.ok()) << status;
  }
  void ExpectInvalid(const std::string& message) {
    const absl::Status status = TryPlan();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(), message);
  }

  const NodePlan::Node& Of(const Node* node) const {
    return plan_.nodes[node->id()];
  }
  // "2 file": the group and why.
  std::string Place(const Node* node) const {
    return absl::StrCat(Of(node).group, " ", Of(node).why);
  }
  // "a, b + c, all": waits for the event of a, the tail of b's and c's group,
  // and the ends of all groups. In the order of their groups.
  std::string Waits(const Node* node) const {
    std::map<int, std::vector<std::string>> by_group;
    auto add = [&](int id) {
      by_group[plan_.nodes[id].group].push_back(graph_.FindNodeId(id)->name());
    };
    for (int id : Of(node).events) add(id);
    for (const auto& [group, names] : by_group) EXPECT_EQ(names.size(), 1);
    std::set<int> of_events;
    for (const auto& [group, names] : by_group) of_events.insert(group);
    for (int id : Of(node).tails) {
      EXPECT_EQ(of_events.count(plan_.nodes[id].group), 0);
      add(id);
    }
    std::vector<std::string> waits;
    for (const auto& [group, names] : by_group) {
      EXPECT_EQ(names.size() > 1, of_events.count(group) == 0);
      waits.push_back(absl::StrJoin(names, " + "));
    }
    if (Of(node).after_all) waits.push_back("all");
    return absl::StrJoin(waits, ", ");
  }
  // The nodes that start a branch, by name.
  std::string Starts() const {
    std::set<std::string> names;
    for (const Node* node : graph_.op_nodes()) {
      if (Of(node).starts) names.insert(node->name());
    }
    return absl::StrJoin(names, ", ");
  }
  // "", "noted" or "noted, records".
  std::string Noted(const Node* node) const {
    std::vector<std::string> parts;
    if (Of(node).noted) parts.push_back("noted");
    if (Of(node).records) parts.push_back("records");
    return absl::StrJoin(parts, ", ");
  }

  Graph graph_;
  NodePlanOptions options_;
  std::map<std::string, NodeFacts> facts_;  // by node
  std::optional<StreamFile> file_;
  NodePlan plan_;

 private:
  static NodeBuilder Transfer(NodeBuilder builder) {
    return builder.Attr("tensor_name", "t")
        .Attr("send_device", "/job:a/replica:0/task:0/device:CPU:0")
        .Attr("send_device_incarnation", int64_t{1})
        .Attr("recv_device", "/job:a/replica:0/task:0/device:GPU:0");
  }
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_PLAN_FIXTURE_H_
