/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/node_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream_file.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

// Takes and returns anything: a node's facts come from the test.
REGISTER_OP("NodePlanTestOp")
    .Input("inputs: Tin")
    .Output("outputs: Tout")
    .Attr("Tin: list(type) >= 0")
    .Attr("Tout: list(type) >= 0");

constexpr int kGroups = 4;

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

// Where nodes go.

TEST_F(NodePlanTest, ANodeWithoutAnyReasonStaysWithTheCaller) {
  Node* a = Op("a", {});
  Plan();
  EXPECT_EQ(Place(a), "0 default");
  options_.home = 3;
  Plan();
  EXPECT_EQ(Place(a), "3 default");
}

TEST_F(NodePlanTest, AScopeDecides) {
  options_.home = 1;
  Node* a = Op("a", 2);
  Node* b = Op("b", 0);
  Plan();
  EXPECT_EQ(Place(a), "2 scope");
  EXPECT_EQ(Place(b), "0 scope");
}

TEST_F(NodePlanTest, EachReasonGoesBeforeTheNext) {
  options_.home = 1;
  options_.propagate = true;
  Node* from = Op("from", 3);
  Node* with_leader = Op("x/leader", 2, {from});
  facts_["x/leader"].leader_reason = "it assigns";
  Node* with_file = Op("x/file", 2, {from});
  Node* with_scope = Op("scope", 2, {from});
  Node* with_input = Op("input", {}, {from});
  Node* with_nothing = Op("nothing", {});
  UseFile("0: x/.*");
  Plan();
  EXPECT_EQ(Place(with_leader), "0 leader: it assigns");
  EXPECT_EQ(Place(with_file), "0 file");
  EXPECT_EQ(Place(with_scope), "2 scope");
  EXPECT_EQ(Place(with_input), "3 propagated");
  EXPECT_EQ(Place(with_nothing), "1 default");
}

TEST_F(NodePlanTest, TheLeaderGoesBeforeAFileThatSaysAnotherGroup) {
  Node* a = Op("a", {});
  facts_["a"].leader_reason = "it assigns";
  UseFile("2: a");
  Plan();
  EXPECT_EQ(Place(a), "0 leader: it assigns");
}

TEST_F(NodePlanTest, SendsAndRecvsStayWithTheCaller) {
  options_.home = 1;
  options_.propagate = true;
  UseFile("3: .*/file");
  Node* from = Op("from", 2);
  const Nodes transfers = {
      Send("send", "_Send", from, {}),        Recv("recv", "_Recv", {}),
      Send("send/scope", "_Send", from, 2),   Recv("recv/scope", "_Recv", 2),
      Send("send/file", "_Send", from, 2),    Recv("recv/file", "_Recv", {}),
      Send("host/file", "_HostSend", from, 2)};
  Plan();
  for (const Node* node : transfers) {
    EXPECT_EQ(Place(node), "1 default") << node->name();
  }
}

// The caller's group is the one that has waited for them.
TEST_F(NodePlanTest, ArgumentsStayWithTheCaller) {
  options_.home = 1;
  options_.propagate = true;
  options_.policy = Policy::kFullGraph;
  UseFile("3: .*/file");
  const Nodes arguments = {Arg("plain"), Arg("scope", 2), Arg("x/file"),
                           Arg("policy")};
  arguments[3]->AddAttr(kStreamPolicyAttr, "full_graph");
  for (Node* argument : arguments) {
    Op(absl::StrCat(argument->name(), "_user"), 2, {argument});
  }
  Plan();
  for (const Node* argument : arguments) {
    EXPECT_EQ(Place(argument), "1 default") << argument->name();
  }
}

TEST_F(NodePlanTest, TheLeaderHasSendsThatMustBeThere) {
  options_.home = 1;
  Node* send = Send("send", "_Send", Op("from", 2), {});
  facts_["send"].leader_reason = "so it is";
  Plan();
  EXPECT_EQ(Place(send), "0 leader: so it is");
}

TEST_F(NodePlanTest, ScratchStaysWithTheLeaderUnlessAGroupIsGiven) {
  options_.home = 3;
  options_.propagate = true;
  Node* from = Op("from", 2);
  const Nodes nodes = {Op("plain", {}), Op("scoped", 2), Op("file", {}),
                       Op("follows", {}, {from})};
  for (const Node* node : nodes) facts_[node->name()].keeps_scratch = true;
  UseFile("1: file");
  Plan();
  EXPECT_EQ(Place(nodes[0]), "0 default");
  EXPECT_EQ(Place(nodes[1]), "2 scope");
  EXPECT_EQ(Place(nodes[2]), "1 file");
  EXPECT_EQ(Place(nodes[3]), "2 propagated");
}

TEST_F(NodePlanTest, ANodeFollowsItsFirstInputThatHasAGroup) {
  options_.propagate = true;
  Node* none = Op("none", {});
  Node* leader = Op("leader", {});
  facts_["leader"].leader_reason = "it assigns";
  Node* two = Op("two", 2);
  Node* three = Op("three", {});
  UseFile("3: three");
  Node* a = Op("a", {}, {none, leader, two, three});
  Node* b = Op("b", {}, {three, two});
  Node* c = Op("c", {}, {b});
  Node* d = Op("d", {}, {none, leader});
  Node* e = Op("e", {}, {d, c});
  Plan();
  EXPECT_EQ(Place(a), "2 propagated");
  EXPECT_EQ(Place(b), "3 propagated");
  EXPECT_EQ(Place(c), "3 propagated");
  EXPECT_EQ(Place(d), "0 default");
  EXPECT_EQ(Place(e), "3 propagated");
}

TEST_F(NodePlanTest, ANodeDoesNotFollowControlInputs) {
  options_.propagate = true;
  Node* a = Op("a", {}, {}, {Op("two", 2)});
  Plan();
  EXPECT_EQ(Place(a), "0 default");
}

TEST_F(NodePlanTest, ANodeFollowsNothingUnlessToldTo) {
  Node* a = Op("a", {}, {Op("two", 2)});
  Plan();
  EXPECT_EQ(Place(a), "0 default");
}

TEST_F(NodePlanTest, AScopeOutsideTheGroupsIsInvalid) {
  Op("a", 3);
  Op("far", 4);
  ExpectInvalid(
      "Node {{node far}} (NodePlanTestOp) is in stream group 4, and the GPU "
      "has 4 (TF_GPU_STREAM_GROUP_COUNT, or the session's multi_stream_num)");
}

TEST_F(NodePlanTest, ANegativeScopeIsInvalid) {
  options_.group_count = 2;
  Op("far", -1);
  ExpectInvalid(
      "Node {{node far}} (NodePlanTestOp) is in stream group -1, and the GPU "
      "has 2 (TF_GPU_STREAM_GROUP_COUNT, or the session's multi_stream_num)");
}

// One file is for all GPUs, and they may have different numbers of groups.
TEST_F(NodePlanTest, AGroupOfTheFileOutsideTheGpusIsInvalid) {
  options_.group_count = 2;
  UseFile("3: far", /*groups=*/4);
  Op("far", 1);
  ExpectInvalid(
      "Node {{node far}} (NodePlanTestOp) is in stream group 3, and the GPU "
      "has 2 (TF_GPU_STREAM_GROUP_COUNT, or the session's multi_stream_num)");
}

TEST_F(NodePlanTest, GroupsAreUsedByWhatIsLaunched) {
  Op("a", 1);
  Op("b", 3);
  Op("c", 0);
  facts_["c"].launched = false;
  Plan();
  EXPECT_EQ(plan_.groups_used, std::vector<bool>({false, true, false, true}));
}

// Policies.

class PolicyTest : public NodePlanTest {
 protected:
  //   NAMEx --> NAMEa1 --> NAMEa2 --> NAMEjoin
  //        '--> NAMEb1 --> NAMEb2 ----'
  void AddFork(const std::string& name = "") {
    Node* x = Op(name + "x", {});
    Nodes ends;
    for (const char* branch : {"a", "b"}) {
      Node* first = Op(absl::StrCat(name, branch, "1"), {}, {x});
      ends.push_back(Op(absl::StrCat(name, branch, "2"), {}, {first}));
    }
    Op(name + "join", {}, {ends[0], ends[1]});
  }
  // x --> branch0, branch1 ... branch7 --> join
  void AddBranches() {
    Node* x = Op("x", {});
    Outputs ends;
    for (int i = 0; i < 8; ++i) {
      ends.push_back(Op(absl::StrCat("branch", i), {}, {x}));
    }
    Op("join", {}, ends);
  }
  void SetCost(double us) {
    options_.cost_us = [us](const Node&) { return us; };
  }
  // To the nodes whose names start so.
  void SetPolicy(const std::string& policy, const std::string& prefix = "") {
    for (Node* node : graph_.op_nodes()) {
      if (!absl::StartsWith(node->name(), prefix)) continue;
      node->ClearAttr(kStreamPolicyAttr);
      node->AddAttr(kStreamPolicyAttr, policy);
    }
  }
  Node* Named(const std::string& name) const {
    for (Node* node : graph_.op_nodes()) {
      if (node->name() == name) return node;
    }
    ADD_FAILURE() << "no node " << name;
    return nullptr;
  }
  int GroupOf(const std::string& name) const { return Of(Named(name)).group; }
  void ExpectForked(const std::string& name = "") const {
    EXPECT_EQ(GroupOf(name + "a1"), GroupOf(name + "a2")) << name;
    EXPECT_EQ(GroupOf(name + "b1"), GroupOf(name + "b2")) << name;
    EXPECT_NE(GroupOf(name + "a1"), GroupOf(name + "b1")) << name;
    for (const char* node : {"a1", "a2", "b1", "b2"}) {
      EXPECT_EQ(Of(Named(name + node)).why, "policy") << name << node;
    }
  }
  // Those whose names start so.
  void ExpectAllAt(const std::string& place,
                   const std::string& prefix = "") const {
    for (const Node* node : graph_.op_nodes()) {
      if (!absl::StartsWith(node->name(), prefix)) continue;
      EXPECT_EQ(Place(node), place) << node->name();
    }
  }
  int GroupsUsed() const {
    return std::count(plan_.groups_used.begin(), plan_.groups_used.end(), true);
  }
};

TEST_F(PolicyTest, APolicyDecidesIfNobodyElseDoes) {
  options_.home = 1;
  options_.policy = Policy::kFullGraph;
  AddFork();
  Plan();
  ExpectForked();
  EXPECT_EQ(Place(Named("x")), "1 policy");
  EXPECT_EQ(Place(Named("join")), "1 policy");
  EXPECT_EQ(GroupsUsed(), 2);
}

TEST_F(PolicyTest, GroupsOfAPolicyWaitForEachOther) {
  options_.policy = Policy::kFullGraph;
  AddFork();
  Plan();
  const std::string away = GroupOf("a1") == 0 ? "b" : "a";
  EXPECT_EQ(Waits(Named(away + "1")), "x");
  EXPECT_EQ(Waits(Named("join")), away + "2");
  EXPECT_EQ(plan_.waits, 2);
  EXPECT_EQ(Starts(), away + "1");
}

TEST_F(PolicyTest, EveryOtherReasonGoesBeforeAPolicy) {
  options_.home = 1;
  options_.policy = Policy::kFullGraph;
  options_.propagate = true;
  UseFile("3: .*/file");
  Node* scope = Op("scope", 2);
  Node* file = Op("x/file", {});
  Node* follows = Op("follows", {}, {scope});
  Node* leader = Op("leader", {});
  facts_["leader"].leader_reason = "it assigns";
  Node* scratch = Op("scratch", {});
  facts_["scratch"].keeps_scratch = true;
  Node* send = Send("send", "_Send", leader, {});
  Node* recv = Recv("recv", "_Recv", {});
  Node* free = Op("free", {});
  for (bool by_attribute : {false, true}) {
    if (by_attribute) {
      options_.policy = Policy::kNone;
      SetPolicy("full_graph:4:always");
    }
    Plan();
    EXPECT_EQ(Place(scope), "2 scope");
    EXPECT_EQ(Place(file), "3 file");
    EXPECT_EQ(Place(follows), "2 propagated");
    EXPECT_EQ(Place(leader), "0 leader: it assigns");
    EXPECT_EQ(Place(scratch), "0 default");
    EXPECT_EQ(Place(send), "1 default");
    EXPECT_EQ(Place(recv), "1 default");
    EXPECT_EQ(Of(free).why, "policy");
  }
}

// A chain goes where what is marked in it is.
TEST_F(PolicyTest, APolicyKnowsWhereMarkedNodesAre) {
  options_.policy = Policy::kFullGraph;
  AddFork();
  Named("b1")->AddAttr(kStreamGroupAttr, 3);
  Plan();
  EXPECT_EQ(Place(Named("b1")), "3 scope");
  EXPECT_EQ(Place(Named("b2")), "3 policy");
  EXPECT_NE(GroupOf("a1"), 3);
}

TEST_F(PolicyTest, AnAttributeGivesItsNodesAPolicy) {
  options_.home = 2;
  AddFork("with_");
  AddFork("without_");
  SetPolicy("full_graph", "with_");
  Plan();
  ExpectForked("with_");
  ExpectAllAt("2 default", "without_");
}

TEST_F(PolicyTest, AnAttributeBeatsThePolicyOfTheOthers) {
  options_.policy = Policy::kFullGraph;
  AddFork("with_");
  AddFork("without_");
  SetPolicy("none", "with_");
  Plan();
  ExpectAllAt("0 default", "with_");
  ExpectForked("without_");
}

TEST_F(PolicyTest, AnAttributeSaysHowManyGroupsToUse) {
  SetCost(100);
  AddBranches();
  for (const char* policy : {"full_graph", "cost", "Full_Graph", "COST"}) {
    for (int groups : {1, 2, 3, 4}) {
      SetPolicy(absl::StrCat(policy, ":", groups));
      Plan();
      EXPECT_EQ(GroupsUsed(), groups) << policy;
    }
    // All, if it says nothing or more than there are.
    for (const char* number : {"", ":0", ":5", ":64", ":0:always"}) {
      SetPolicy(absl::StrCat(policy, number));
      Plan();
      EXPECT_EQ(GroupsUsed(), kGroups) << policy << number;
    }
  }
}

TEST_F(PolicyTest, OneGraphMayHaveSeveralPolicies) {
  AddFork("full_");
  AddFork("other_");
  SetPolicy("full_graph:2", "full_");
  SetPolicy("embedding", "other_");
  Plan();
  ExpectForked("full_");
  ExpectAllAt("0 policy", "other_");
}

TEST_F(PolicyTest, AWrongAttributeIsInvalidAndNamesTheNode) {
  Node* wrong = Op("wrong", {}, {Op("right", {})});
  for (const char* text :
       {"", "full", "graph:2", ":2", "cost:", "cost:-1", "cost:many",
        "cost:1.5", "cost 2", "cost:99999999999", "cost:2:", "cost:2:never",
        "cost::always", "cost:2:always:"}) {
    wrong->ClearAttr(kStreamPolicyAttr);
    wrong->AddAttr(kStreamPolicyAttr, text);
    ExpectInvalid(absl::StrCat(
        "Node {{node wrong}} (NodePlanTestOp) has the stream policy \"", text,
        "\", which is not POLICY:GROUPS:always"));
  }
}

TEST_F(PolicyTest, AnotherPolicyMayStandForCost) {
  SetCost(100);
  AddFork();
  for (bool by_attribute : {false, true}) {
    options_.policy = by_attribute ? Policy::kNone : Policy::kCost;
    if (by_attribute) SetPolicy("cost:2");
    options_.cost_policy = Policy::kNone;
    Plan();
    ExpectAllAt("0 default");
    for (Policy policy : {Policy::kCost, Policy::kFullGraph}) {
      options_.cost_policy = policy;
      Plan();
      ExpectForked();
    }
    options_.cost_policy = Policy::kEmbedding;
    Plan();
    ExpectAllAt("0 policy");
  }
}

TEST_F(PolicyTest, NoOtherPolicyStandsForFullGraph) {
  options_.policy = Policy::kFullGraph;
  options_.cost_policy = Policy::kNone;
  AddFork();
  Plan();
  ExpectForked();
}

TEST_F(PolicyTest, WithoutASplitPoliciesThatAreMeasuredDoNotCount) {
  options_.split = false;
  options_.policy = Policy::kFullGraph;
  const Nodes nodes = {Op("by_option", {}), Op("measured", {}),
                       Op("always", {})};
  SetPolicy("full_graph:2", "measured");
  SetPolicy("full_graph:2:always", "always");
  auto whys = [&] {
    std::vector<std::string> whys;
    for (const Node* node : nodes) whys.push_back(Of(node).why);
    return absl::StrJoin(whys, ", ");
  };
  Plan();
  EXPECT_EQ(whys(), "default, default, policy");
  // Nothing is.
  options_.measure = false;
  Plan();
  EXPECT_EQ(whys(), "policy, policy, policy");
}

TEST_F(PolicyTest, WhatOpsAndWaitsCostCounts) {
  options_.policy = Policy::kCost;
  AddFork();
  SetCost(100);
  Plan();
  ExpectForked();
  options_.wait_us = 1000;
  Plan();
  ExpectAllAt("0 policy");
  options_.wait_us = 5;
  SetCost(1);
  Plan();
  ExpectAllAt("0 policy");
}

TEST_F(PolicyTest, WhatIsNotLaunchedStaysWithTheCaller) {
  options_.home = 1;
  options_.policy = Policy::kFullGraph;
  Node* constant = Const("constant", {});
  Node* a = Op("a", {}, {constant});
  Node* join = NoOp("join", {a});
  Plan();
  EXPECT_EQ(Place(constant), "1 default");
  EXPECT_EQ(Place(join), "1 default");
  EXPECT_EQ(Place(a), "1 policy");
}

TEST_F(PolicyTest, WhatMayBeDeadStaysWithTheCaller) {
  options_.home = 1;
  options_.policy = Policy::kFullGraph;
  AddFork();
  AddSwitch("switch", Named("x"));
  Op("in_branch", {}, {Named("switch")});
  Plan();
  ExpectForked();
  EXPECT_EQ(Place(Named("switch")), "1 default");
  EXPECT_EQ(Place(Named("in_branch")), "1 default");
}

//   x --> host --> join       the host orders these
//    '--> b ------'
TEST_F(PolicyTest, WhatHasAllItsOutputsOnTheHostIsNoBranch) {
  options_.policy = Policy::kFullGraph;
  for (bool all : {true, false}) {
    const std::string name = all ? "all/" : "some/";
    Node* x = Op(name + "x", {});
    Node* host = Add(NodeBuilder(name + "host", "NodePlanTestOp")
                         .Input(Outputs{x})
                         .Attr("Tout", DataTypeVector(2, DT_FLOAT)));
    facts_[name + "host"].on_host = {true, all};
    Op(name + "join", {}, {Op(name + "b", {}, {x})}, {host});
  }
  Plan();
  ExpectAllAt("0 policy", "all/");
  EXPECT_NE(GroupOf("some/host"), GroupOf("some/b"));
}

TEST(PolicyOfTest, TheAttributeThenTheOptionsSay) {
  Graph graph(OpRegistry::Global());
  NodePlanOptions options;
  options.group_count = 4;
  int count = 0;
  auto policy_of = [&](const std::string& attribute) {
    NodeBuilder builder(absl::StrCat("n", count++), "NoOp");
    if (!attribute.empty()) builder.Attr(kStreamPolicyAttr, attribute);
    Node* node = nullptr;
    EXPECT_TRUE(builder.Finalize(&graph, &node).ok());
    absl::StatusOr<NodePolicy> policy = PolicyOf(*node, options);
    EXPECT_TRUE(policy.ok()) << policy.status();
    return policy.value_or(NodePolicy());
  };
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kNone, 4, true}));
  options.policy = Policy::kEmbedding;
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kEmbedding, 4, true}));
  EXPECT_EQ(policy_of("full_graph:3"),
            (NodePolicy{Policy::kFullGraph, 3, true}));
  EXPECT_EQ(policy_of("full_graph:9:always"),
            (NodePolicy{Policy::kFullGraph, 4, false}));
  EXPECT_EQ(policy_of("cost:0"), (NodePolicy{Policy::kCost, 4, true}));
  EXPECT_EQ(policy_of("user_defined:2").policy, Policy::kNone);
  options.cost_policy = Policy::kFullGraph;
  EXPECT_EQ(policy_of("cost:2"), (NodePolicy{Policy::kFullGraph, 2, true}));
  EXPECT_EQ(policy_of("embedding:2"),
            (NodePolicy{Policy::kEmbedding, 2, true}));
  options.measure = false;
  EXPECT_EQ(policy_of("embedding:2"),
            (NodePolicy{Policy::kEmbedding, 2, false}));
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kEmbedding, 4, false}));
}

// What nodes wait for.

TEST_F(NodePlanTest, OneProducerInAnotherGroupIsWaitedForByItsEvent) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 2, {a});
  Plan();
  EXPECT_EQ(Waits(a), "");
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Noted(a), "noted, records");
  EXPECT_EQ(Noted(b), "");
  EXPECT_EQ(plan_.waits, 1);
}

TEST_F(NodePlanTest, SeveralProducersInOneGroupAreWaitedForByItsTail) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 1);
  Node* c = Op("c", 2, {a, b});
  Plan();
  EXPECT_EQ(Waits(c), "a + b");
  EXPECT_EQ(Noted(a), "noted");
  EXPECT_EQ(Noted(b), "noted");
  EXPECT_EQ(plan_.waits, 1);
}

TEST_F(NodePlanTest, EachGroupIsWaitedForInItsOwnWay) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 2);
  Node* c = Op("c", 2);
  Node* d = Op("d", 3);
  Node* e = Op("e", 0, {d, c, b, a});
  Plan();
  EXPECT_EQ(Waits(e), "a, b + c, d");
  EXPECT_EQ(plan_.waits, 3);
}

TEST_F(NodePlanTest, AProducerRecordsForOneThoughItIsNotedForAnother) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 1);
  Node* tail = Op("tail", 2, {a, b});
  Node* event = Op("event", 3, {a});
  Plan();
  EXPECT_EQ(Waits(tail), "a + b");
  EXPECT_EQ(Waits(event), "a");
  EXPECT_EQ(Noted(a), "noted, records");
  EXPECT_EQ(Noted(b), "noted");
}

TEST_F(NodePlanTest, TwoEdgesFromOneProducerAreOneWait) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 2, {a, a}, {a});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(plan_.waits, 1);
  EXPECT_EQ(plan_.waits_left_out, 0);
}

TEST_F(NodePlanTest, AGroupDoesNotWaitForItself) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 1, {a}, {a});
  Plan();
  EXPECT_EQ(Waits(b), "");
  EXPECT_EQ(Noted(a), "");
  EXPECT_EQ(plan_.waits, 0);
}

TEST_F(NodePlanTest, DefaultNodesAreInTheCallersGroup) {
  Node* a = Op("a", 2);
  Node* b = Op("b", {}, {a});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  options_.home = 2;
  Plan();
  EXPECT_EQ(Waits(b), "");
}

TEST_F(NodePlanTest, OutputsInHostMemoryAreNotWaitedFor) {
  Node* a = HostOp("a", 1);
  Node* b = Op("b", 2, {a});
  Plan();
  EXPECT_EQ(Waits(b), "");
  EXPECT_EQ(Noted(a), "");
}

TEST_F(NodePlanTest, EachOutputHasItsOwnMemory) {
  Node* a = Add(NodeBuilder("a", "NodePlanTestOp")
                    .Input(Outputs{})
                    .Attr("Tout", DataTypeVector(3, DT_FLOAT)),
                1);
  // Nothing is known of the third.
  facts_["a"].on_host = {true, false};
  const Nodes users = {Op("user_0", 2, {{a, 0}}), Op("user_1", 2, {{a, 1}}),
                       Op("user_2", 2, {{a, 2}})};
  Plan();
  EXPECT_EQ(Waits(users[0]), "");
  EXPECT_EQ(Waits(users[1]), "a");
  EXPECT_EQ(Waits(users[2]), "a");
}

TEST_F(NodePlanTest, ControlEdgesAreWaitedForWhateverTheOutputs) {
  Node* a = HostOp("a", 1);
  Node* b = Op("b", 2, {a}, {a});
  Plan();
  EXPECT_EQ(Waits(b), "a");
}

TEST_F(NodePlanTest, ResourcesAreNotWaitedFor) {
  Node* a = Op("a", 1, {}, {}, DT_RESOURCE);
  Node* b = Op("b", 2, {a});
  Plan();
  EXPECT_EQ(Waits(b), "");
}

TEST_F(NodePlanTest, ListsAreWaitedForAlsoIfTheyAreOnTheHost) {
  Node* a = HostOp("a", 1, {}, DT_VARIANT);
  Node* b = Op("b", 2, {a});
  Plan();
  EXPECT_EQ(Waits(b), "a");
}

TEST_F(NodePlanTest, WhatIsNotLaunchedHandsItsPredecessorsOn) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 2);
  Node* join = NoOp("join", {a, b});
  Node* constant = Const("constant", {join});
  Node* by_control = Op("by_control", 3, {}, {join});
  Node* by_data = Op("by_data", 3, {constant});
  Plan();
  EXPECT_EQ(Waits(join), "");
  EXPECT_EQ(Waits(constant), "");
  EXPECT_EQ(Noted(join), "");
  EXPECT_EQ(Noted(constant), "");
  EXPECT_EQ(Waits(by_control), "a, b");
  EXPECT_EQ(Waits(by_data), "a, b");
}

TEST_F(NodePlanTest, AConstantIsNotWaitedFor) {
  Node* a = Const("a", {});
  Node* b = Op("b", 2, {a}, {a});
  Plan();
  EXPECT_EQ(Waits(b), "");
  EXPECT_EQ(Noted(a), "");
}

TEST_F(NodePlanTest, UpToSixtyFourPredecessorsAreHandedOn) {
  const Nodes many = Many(64);
  Node* last = Op("last", 2, {}, {NoOp("join", many)});
  Plan();
  EXPECT_FALSE(Of(last).after_all);
  EXPECT_EQ(Of(last).tails.size(), 64);
}

TEST_F(NodePlanTest, MorePredecessorsThanThatBecomeAWaitForAll) {
  const Nodes many = Many(65);
  Node* join = NoOp("join", many);
  Node* last = Op("last", 2, {}, {join});
  Node* through = Op("through", 3, {Const("constant", {NoOp("next", {join})})});
  Node* after = Op("after", 0, {last});
  Plan();
  EXPECT_EQ(Waits(join), "");
  EXPECT_EQ(Waits(last), "all");
  EXPECT_EQ(Waits(through), "all");
  EXPECT_EQ(Waits(after), "last");
  EXPECT_EQ(Noted(many[0]), "");
}

TEST_F(NodePlanTest, AWaitForAllDoesNotHideOtherWaits) {
  const Nodes many = Many(65);
  Node* a = Op("a", 3);
  Node* last = Op("last", 2, {a}, {NoOp("join", many)});
  Plan();
  EXPECT_EQ(Waits(last), "a, all");
}

TEST_F(NodePlanTest, WhatIsLaunchedMayHaveAnyNumberOfPredecessors) {
  const Nodes many = Many(65);
  Node* last = Op("last", 2, {}, many);
  Plan();
  EXPECT_FALSE(Of(last).after_all);
  EXPECT_EQ(Of(last).tails.size(), 65);
}

TEST_F(NodePlanTest, AControlTriggerWaitsForAll) {
  Node* a = Op("a", 1);
  Node* trigger = Add(NodeBuilder("trigger", "ControlTrigger"), 1, {a});
  Node* b = Op("b", 1, {}, {trigger});
  Plan();
  EXPECT_EQ(Waits(trigger), "all");
  EXPECT_EQ(Waits(b), "");
}

TEST_F(NodePlanTest, AControlTriggerThatIsNotLaunchedHandsItsWaitOn) {
  facts_["trigger"].launched = false;
  Node* trigger =
      Add(NodeBuilder("trigger", "ControlTrigger"), {}, {Op("a", 2)});
  Node* b = Op("b", 1, {}, {trigger});
  Plan();
  EXPECT_EQ(Waits(trigger), "");
  EXPECT_EQ(Waits(b), "a, all");
}

// A change of a variable may come long after what it takes was made: others
// that use the variable may have been launched in that group since.

TEST_F(NodePlanTest, AChangeOfStateWaitsForTheTailEvenOfOneProducer) {
  Node* a = Op("a", 1);
  Node* change = Op("change", 0, {a});
  facts_["change"].changes_state = true;
  Plan();
  EXPECT_EQ(Of(change).tails, std::vector<int>({a->id()}));
  EXPECT_EQ(Of(change).events, std::vector<int>());
  EXPECT_EQ(Noted(a), "noted");
  EXPECT_EQ(plan_.waits, 1);
}

TEST_F(NodePlanTest, AChangeOfStateWaitsForTheTailOfEachGroup) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 2);
  Node* c = Op("c", 2);
  Node* own = Op("own", 0);
  Node* change = Op("change", 0, {own, c, b, a});
  facts_["change"].changes_state = true;
  Plan();
  EXPECT_EQ(Of(change).tails, std::vector<int>({a->id(), b->id(), c->id()}));
  EXPECT_EQ(Of(change).events, std::vector<int>());
  EXPECT_EQ(plan_.waits, 2);
}

TEST_F(NodePlanTest, AProducerRecordsForOthersThanTheChangeOfState) {
  Node* a = Op("a", 1);
  Node* change = Op("change", 0, {a});
  facts_["change"].changes_state = true;
  Node* other = Op("other", 2, {a});
  Plan();
  EXPECT_EQ(Of(change).tails, std::vector<int>({a->id()}));
  EXPECT_EQ(Waits(other), "a");
  EXPECT_EQ(Noted(a), "noted, records");
}

TEST_F(NodePlanTest, WhoNeedsAChangeOfStateWaitsForItsEvent) {
  Node* change = Op("change", 0);
  facts_["change"].changes_state = true;
  Node* b = Op("b", 1, {}, {change});
  Plan();
  EXPECT_EQ(Waits(b), "change");
}

// Where branches start.

TEST_F(NodePlanTest, TheFirstNodeOfEachBranchStarts) {
  Node* x = Op("x", {});
  Node* a = Op("a1", 1, {x});
  a = Op("a2", 1, {a});
  Node* b = Op("b1", 2, {x});
  b = Op("b2", 2, {b, b});
  b = Op("b3", 2, {b});
  Op("sum", {}, {a, b});
  Plan();
  EXPECT_EQ(Starts(), "a1, b1");
}

TEST_F(NodePlanTest, ABranchThatNeedsNothingStarts) {
  Node* a = Op("a1", 1);
  Op("a2", 1, {a});
  Op("b1", 2, {Arg("arg", 2), ReadVariable("read", 2), Const("const", {})});
  Plan();
  EXPECT_EQ(Starts(), "a1, b1");
}

TEST_F(NodePlanTest, AChainIsOneBranchWhateverItIsGivenOnTheWay) {
  Node* x = Op("x", {});
  Node* a = Op("a1", 1, {x, Arg("arg_1")});
  a = Op("a2", 1, {a, ReadVariable("weights", 1)});
  a = Op("a3", 1, {a, ReadVariable("others", {})});
  a = Op("a4", 1, {a, Arg("arg_2")});
  a = Op("a5", 1, {Const("const", {}), a});
  a = Op("a6", 1, {Identity("identity", 1, a)});
  // Nothing is launched for it, so that no other group comes in between.
  a = Op("a7", 1, {Identity("elsewhere", 2, a)});
  a = Op("a8", 1, {a, Recv("recv", "_Recv", {})});
  // As deep as the chain itself.
  Node* late = Recv("late", "_Recv", {});
  graph_.AddControlEdge(a, late);
  Op("a9", 1, {late});
  Plan();
  EXPECT_EQ(Starts(), "a1");
}

TEST_F(NodePlanTest, WhatOnlyHandsOnDoesNotStart) {
  Node* x = Op("x", {});
  Node* identity = Identity("identity", 1, x);
  Node* read = ReadVariable("read", 1, {x});
  Op("a", 1, {identity, read});
  Plan();
  EXPECT_EQ(Starts(), "a");
}

TEST_F(NodePlanTest, ABranchThatIsEnteredAgainStartsAgain) {
  Node* a = Op("a1", 1, {Op("x", {})});
  Node* b = Op("b1", 2, {a});
  a = Op("a2", 1, {b});
  Op("a3", 1, {a});
  Plan();
  EXPECT_EQ(Starts(), "a1, a2, b1");
}

// Of each branch, the forward part's thread is long gone when the loss is
// there.
TEST_F(NodePlanTest, ABackwardPassStartsThoughItTakesItsBranchesActivations) {
  Node* x = Arg("x");
  std::vector<Node*> activations, ends;
  for (int group : {1, 2}) {
    const std::string name = absl::StrCat("g", group);
    Node* w = ReadVariable(name + "_w", group);
    Node* first = Op(name + "_forward1", group, {x, w});
    activations.push_back(first);
    ends.push_back(Op(name + "_forward2", group, {first, w}));
  }
  Node* loss = Op("loss", {}, {ends[0], ends[1]});
  for (int group : {1, 2}) {
    const std::string name = absl::StrCat("g", group);
    Node* activation = activations[group - 1];
    Node* last = Op(name + "_backward2", group, {activation, loss});
    last = Op(name + "_backward1", group, {last, x, activation});
    facts_[name + "_update"].changes_state = true;
    Op(name + "_update", 0, {last});
  }
  Plan();
  EXPECT_EQ(Starts(), "g1_backward2, g1_forward1, g2_backward2, g2_forward1");
}

TEST_F(NodePlanTest, ADeeperInputOfItsOwnGroupContinuesTheBranch) {
  Node* x = Op("x", {});
  Node* a = Op("a2", 1, {Op("a1", 1, {x})});
  Op("a3", 1, {x, a, Op("b", 2, {x})});
  Plan();
  EXPECT_EQ(Starts(), "a1, b");
}

TEST_F(NodePlanTest, OfEquallyDeepInputsOneOfItsOwnGroupIsEnough) {
  Node* a = Op("a1", 1);
  Node* b = Op("b1", 2);
  Op("a2", 1, {a, b});
  Op("a3", 1, {b, a});
  Op("c1", 3, {b, a});
  Plan();
  EXPECT_EQ(Starts(), "a1, b1, c1");
}

TEST_F(NodePlanTest, ControlInputsAreNeededToo) {
  Node* a = Op("a1", 1);
  Node* deep = Op("deep2", {}, {Op("deep1", {})});
  Op("a2", 1, {a}, {deep});
  Op("a3", 1, {a}, {NoOp("join", {deep})});
  Op("a4", 1, {}, {NoOp("next", {a})});
  Plan();
  EXPECT_EQ(Starts(), "a1, a2, a3");
}

TEST_F(NodePlanTest, NodesOfHomeNeverStart) {
  Node* a = Op("a", 1);
  Node* leader = Op("leader", 0, {a});
  Op("home", {}, {leader});
  Op("alone", {});
  Plan();
  EXPECT_EQ(Starts(), "a");
  options_.home = 2;
  Plan();
  EXPECT_EQ(Starts(), "a, leader");
  options_.home = 1;
  Plan();
  EXPECT_EQ(Starts(), "leader");
}

// Which waits are left out.

// The drawing in node_plan.h, where e needs a and c, too.
TEST_F(NodePlanTest, WaitsThatOthersImplyAreLeftOut) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 2, {Op("w", 2)});
  Node* d = Op("d", 2, {a, b, c});
  Node* e = Op("e", 1, {a, b, c, d});
  Plan();
  EXPECT_EQ(Waits(b), "");
  EXPECT_EQ(Waits(c), "");
  EXPECT_EQ(Waits(d), "b");
  EXPECT_EQ(Waits(e), "d");
  EXPECT_EQ(Noted(a), "");
  EXPECT_EQ(Noted(b), "noted, records");
  EXPECT_EQ(Noted(c), "");
  EXPECT_EQ(Noted(d), "noted, records");
  EXPECT_EQ(plan_.waits, 2);
  EXPECT_EQ(plan_.waits_left_out, 2);
}

TEST_F(NodePlanTest, WithoutReductionAllWaitsStay) {
  options_.reduce = false;
  Node* a = Op("a", 1);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 2, {Op("w", 2)});
  Node* d = Op("d", 2, {a, b, c});
  Node* e = Op("e", 1, {a, b, c, d});
  Plan();
  EXPECT_EQ(Waits(d), "a + b");
  EXPECT_EQ(Waits(e), "c + d");
  EXPECT_EQ(plan_.waits, 2);
  EXPECT_EQ(plan_.waits_left_out, 0);
}

TEST_F(NodePlanTest, AChainThroughThreeGroupsImpliesTheFirst) {
  Node* a = Op("a", 0);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 2, {a, b});
  Node* d = Op("d", 3, {a, b, c});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "b");
  EXPECT_EQ(Waits(d), "c");
  EXPECT_EQ(plan_.waits_left_out, 3);
}

TEST_F(NodePlanTest, BothSidesOfADiamondAreWaitedFor) {
  Node* a = Op("a", 0);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 2, {a});
  Node* d = Op("d", 3, {a, b, c});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "a");
  EXPECT_EQ(Waits(d), "b, c");
  EXPECT_EQ(plan_.waits_left_out, 1);
}

TEST_F(NodePlanTest, AnEarlierWaitOfTheSameStreamImpliesALaterOne) {
  Node* a = Op("a", 0);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 1, {a, b});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "");
}

TEST_F(NodePlanTest, NodesOfOneGroupWithoutAPathImplyNothing) {
  Node* a = Op("a", 0);
  Node* b = Op("b", 1, {a});
  // Either may be launched first.
  Node* c = Op("c", 1, {a});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "a");
}

TEST_F(NodePlanTest, TheLastOfOneStreamIsWaitedForByItsEventNotByATail) {
  Node* a = Op("a", 1);
  Node* b = Op("b", 1, {a});
  Node* c = Op("c", 2, {a, b});
  Plan();
  EXPECT_EQ(Waits(c), "b");
}

TEST_F(NodePlanTest, AnyEdgeInsideAGroupImpliesOrder) {
  for (const char* edge : {"host", "resource"}) {
    const DataType type = edge[0] == 'h' ? DT_FLOAT : DT_RESOURCE;
    auto name = [&](const char* node) { return absl::StrCat(edge, node); };
    Node* a = Op(name("_a"), 0);
    Node* b = HostOp(name("_b"), 1, {a}, type);
    Node* c = Op(name("_c"), 1, {a, b});
    Plan();
    EXPECT_EQ(Waits(c), "") << edge;
  }
}

TEST_F(NodePlanTest, HostOutputsBetweenGroupsImplyNothing) {
  Node* a = Op("a", 0);
  Node* b = HostOp("b", 1, {a});
  Node* c = Op("c", 2, {a, b});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "a");
}

TEST_F(NodePlanTest, OrderThroughWhatIsNotLaunchedCounts) {
  Node* a = Op("a", 0);
  Node* b = Op("b", 1, {}, {NoOp("join", {a})});
  Node* c = Op("c", 2, {a}, {NoOp("next", {b})});
  Plan();
  EXPECT_EQ(Waits(b), "a");
  EXPECT_EQ(Waits(c), "b");
}

// A node on the path may be dead, and so not launched.
class UnreducedTest : public NodePlanTest {
 protected:
  UnreducedTest() {
    a_ = Op("a", 0);
    b_ = Op("b", 1, {a_});
    c_ = Op("c", 2, {a_, b_});
  }
  void ExpectReduced(bool reduced) {
    Plan();
    EXPECT_EQ(Waits(c_), reduced ? "b" : "a, b");
    EXPECT_EQ(plan_.waits_left_out, reduced ? 1 : 0);
  }
  Node* a_;
  Node* b_;
  Node* c_;
};

TEST_F(UnreducedTest, TheGraphIsReducedAsItIs) { ExpectReduced(true); }

TEST_F(UnreducedTest, NothingIsLeftOutBesideASwitch) {
  AddSwitch("switch", a_);
  ExpectReduced(false);
}

TEST_F(UnreducedTest, NothingIsLeftOutBesideAMerge) {
  Add(NodeBuilder("merge", "Merge").Input(Outputs{a_, b_}));
  ExpectReduced(false);
}

TEST_F(UnreducedTest, NothingIsLeftOutBesideAnEnter) {
  Add(NodeBuilder("enter", "Enter").Input(a_).Attr("frame_name", "f"));
  ExpectReduced(false);
}

TEST_F(UnreducedTest, NothingIsLeftOutOfAHugeGraph) {
  NodeDef def;
  def.set_op("NoOp");
  for (int i = 0; i < 20000; ++i) {
    def.set_name(absl::StrCat("n", i));
    absl::Status status;
    graph_.AddNode(def, &status);
    ASSERT_TRUE(status.ok()) << status;
  }
  ExpectReduced(false);
}

// while (...) { x = change(x); y = body(invariant) after change }, where a
// walk of the graph may come to `body` by way of `invariant` before it comes
// to `change`.
TEST_F(NodePlanTest, InALoopTooANodeComesAfterWhatIsHandedOn) {
  for (bool invariant_first : {true, false}) {
    const std::string prefix = invariant_first ? "first/" : "second/";
    Node* start = Op(prefix + "start", 0);
    auto enter = [&](const std::string& name) {
      return Add(NodeBuilder(prefix + name, "Enter")
                     .Input(start)
                     .Attr("frame_name", prefix + "f"));
    };
    Node* invariant = invariant_first ? enter("invariant") : nullptr;
    Node* entered = enter("entered");
    if (!invariant_first) invariant = enter("invariant");
    Node* merge = Add(NodeBuilder(prefix + "merge", "Merge")
                          .Input(Outputs{entered, entered}));
    Node* condition =
        Add(NodeBuilder(prefix + "condition", "LoopCond")
                .Input(HostOp(prefix + "if", {}, {merge}, DT_BOOL)));
    Node* split = Add(
        NodeBuilder(prefix + "switch", "Switch").Input(merge).Input(condition));
    Node* change = Op(prefix + "change", 1, {{split, 1}});
    Node* body =
        Op(prefix + "body", 2, {invariant}, {NoOp(prefix + "join", {change})});
    Node* next = Add(NodeBuilder(prefix + "next", "NextIteration").Input(body));
    ASSERT_TRUE(graph_.UpdateEdge(next, 0, merge, 1).ok());
    Plan();
    EXPECT_EQ(Waits(body),
              absl::StrCat(prefix, "invariant, ", prefix, "change"));
  }
}

// Random graphs.

constexpr int kSeeds = 400;

// Nodes by number, which is not their id; edges go to higher numbers only.
struct RandomGraph {
  explicit RandomGraph(uint32_t seed) : graph(OpRegistry::Global()) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % n); };
    auto percent = [&](int chance) { return below(100) < chance; };
    const int count = 10 + below(51);
    options.group_count = 2 + below(4);
    options.home = below(options.group_count);
    const int reach = 2 + below(count);  // how far back inputs are
    const int unlaunched = below(40);
    auto earlier = [&](int i) { return i - 1 - below(std::min(i, reach)); };

    std::vector<NodeDef> defs(count);
    struct Input {
      int from, output, to, input;
    };
    std::vector<Input> inputs;
    std::vector<DataTypeVector> types(count);
    facts.resize(count);
    groups.resize(count);
    for (int i = 0; i < count; ++i) {
      for (int k = 1 + below(3); k > 0; --k) {
        static constexpr DataType kTypes[] = {DT_FLOAT, DT_FLOAT, DT_FLOAT,
                                              DT_RESOURCE, DT_VARIANT};
        types[i].push_back(kTypes[below(5)]);
      }
      facts[i].launched = !percent(unlaunched);
      for (int k = below(types[i].size() + 1); k > 0; --k) {
        facts[i].on_host.push_back(percent(40));
      }
      DataTypeVector taken;
      if (i > 0) {
        for (int k = below(4); k > 0; --k) {
          const int from = earlier(i);
          const int output = below(types[from].size());
          inputs.push_back({from, output, i, static_cast<int>(taken.size())});
          taken.push_back(types[from][output]);
        }
        for (int k = below(3); k > 0; --k) {
          inputs.push_back(
              {earlier(i), Graph::kControlSlot, i, Graph::kControlSlot});
        }
      }
      defs[i].set_name(absl::StrCat("n", i));
      defs[i].set_op("NodePlanTestOp");
      AddNodeAttr("Tin", taken, &defs[i]);
      AddNodeAttr("Tout", types[i], &defs[i]);
      groups[i] = options.home;
      if (percent(75)) {
        groups[i] = below(options.group_count);
        AddNodeAttr(kStreamGroupAttr, groups[i], &defs[i]);
      }
      if (percent(5)) {
        facts[i].leader_reason = "so it is";
        groups[i] = 0;
      }
    }
    // Ids say nothing of the order.
    std::vector<int> turns(count);
    for (int i = 0; i < count; ++i) turns[i] = i;
    for (int i = count; i > 1; --i) std::swap(turns[i - 1], turns[below(i)]);
    nodes.resize(count);
    for (int i : turns) {
      absl::Status status;
      nodes[i] = graph.AddNode(defs[i], &status);
      if (!status.ok()) ADD_FAILURE() << status;
    }
    for (const Input& edge : inputs) {
      graph.AddEdge(nodes[edge.from], edge.output, nodes[edge.to], edge.input);
    }
    FixupSourceAndSinkEdges(&graph);
    numbers.assign(graph.num_node_ids(), -1);
    for (int i = 0; i < count; ++i) numbers[nodes[i]->id()] = i;
    for (NodeFacts& fact : facts) fact.changes_state = percent(10);
    FindNeeds();
  }

  // What the edge itself asks for.
  bool IsOrdered(const Edge& edge) const {
    if (edge.IsControlEdge()) return true;
    const NodeFacts& from = facts[numbers[edge.src()->id()]];
    switch (edge.src()->output_type(edge.src_output())) {
      case DT_VARIANT:
        return true;
      case DT_RESOURCE:
        return false;
      default:
        return edge.src_output() >= static_cast<int>(from.on_host.size()) ||
               !from.on_host[edge.src_output()];
    }
  }

  // The launched nodes that must come after launched node `from`, by a walk
  // through `at` and others that are not launched.
  void Follow(int from, int at) {
    for (const Edge* edge : nodes[at]->out_edges()) {
      const int to = numbers[edge->dst()->id()];
      if (to < 0) continue;  // the sink
      const bool direct = at == from && facts[to].launched;
      if (direct && groups[from] == groups[to]) streams.insert({from, to});
      if (!IsOrdered(*edge)) continue;
      if (!facts[to].launched) {
        Follow(from, to);
      } else if (groups[from] == groups[to]) {
        streams.insert({from, to});
      } else {
        needs.insert({from, to});
      }
    }
  }
  void FindNeeds() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (facts[i].launched) Follow(i, i);
    }
  }

  NodePlan Plan(bool reduce) {
    options.reduce = reduce;
    absl::StatusOr<NodePlan> plan = MakeNodePlan(
        graph, options,
        [this](const Node& node) { return facts[numbers[node.id()]]; });
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : NodePlan();
  }

  using Pairs = std::set<std::pair<int, int>>;

  // The earlier and the later node of each wait of the plan, tails by each of
  // their nodes.
  Pairs WaitsOf(const NodePlan& plan) const {
    Pairs waits;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const NodePlan::Node& planned = plan.nodes[nodes[i]->id()];
      for (int id : planned.events) waits.insert({numbers[id], i});
      for (int id : planned.tails) waits.insert({numbers[id], i});
    }
    return waits;
  }

  // The needs that streams and waits do not meet, as text; none if "".
  std::string Unmet(const Pairs& waits) const {
    std::vector<std::vector<int>> next(nodes.size());
    for (const auto& [from, to] : streams) next[from].push_back(to);
    for (const auto& [from, to] : waits) next[from].push_back(to);
    std::string unmet;
    for (size_t from = 0; from < nodes.size(); ++from) {
      std::vector<bool> seen(nodes.size());
      std::vector<int> left = {static_cast<int>(from)};
      while (!left.empty()) {
        const int at = left.back();
        left.pop_back();
        for (int to : next[at]) {
          if (!seen[to]) left.push_back(to);
          seen[to] = true;
        }
      }
      for (auto need = needs.lower_bound({from, 0});
           need != needs.end() && need->first == static_cast<int>(from);
           ++need) {
        if (seen[need->second]) continue;
        absl::StrAppend(&unmet, " n", from, "->n", need->second);
      }
    }
    return unmet;
  }

  Graph graph;
  NodePlanOptions options;
  std::vector<Node*> nodes;
  std::vector<int> numbers;  // by id; -1 if not an op
  std::vector<NodeFacts> facts;
  std::vector<int> groups;
  // Of launched nodes: pairs of different groups that must be ordered, and
  // pairs of one group that its stream orders.
  Pairs needs, streams;
};

class RandomNodePlanTest : public ::testing::Test {
 protected:
  // Runs `check` for a few hundred graphs, until one fails.
  template <typename Check>
  void ForEachGraph(Check check) {
    for (int seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
      SCOPED_TRACE(absl::StrCat("seed ", seed));
      RandomGraph random(seed);
      check(&random);
    }
  }
};

TEST_F(RandomNodePlanTest, EveryNeedIsMet) {
  int left_out = 0, handed_on = 0;
  ForEachGraph([&](RandomGraph* random) {
    const NodePlan plan = random->Plan(/*reduce=*/true);
    EXPECT_EQ(random->Unmet(random->WaitsOf(plan)), "");
    left_out += plan.waits_left_out;
    for (const auto& [from, to] : random->needs) {
      bool direct = false;
      for (const Node* in : random->nodes[to]->in_nodes()) {
        direct |= in == random->nodes[from];
      }
      handed_on += !direct;
    }
  });
  // Else the graphs would show little.
  EXPECT_GT(left_out, 10 * kSeeds / 4);
  EXPECT_GT(handed_on, kSeeds);
}

TEST_F(RandomNodePlanTest, EveryWaitIsNeeded) {
  int waits = 0;
  ForEachGraph([&](RandomGraph* random) {
    const RandomGraph::Pairs all = random->WaitsOf(random->Plan(true));
    for (const auto& wait : all) {
      RandomGraph::Pairs rest = all;
      rest.erase(wait);
      EXPECT_NE(random->Unmet(rest), "")
          << "n" << wait.second << " waits for n" << wait.first;
      ++waits;
    }
  });
  EXPECT_GT(waits, 10 * kSeeds);
}

TEST_F(RandomNodePlanTest, WithoutReductionEveryNeedIsAWait) {
  ForEachGraph([&](RandomGraph* random) {
    const NodePlan plan = random->Plan(/*reduce=*/false);
    EXPECT_EQ(random->WaitsOf(plan), random->needs);
    EXPECT_EQ(plan.waits_left_out, 0);
  });
}

TEST_F(RandomNodePlanTest, PlansAreConsistent) {
  int tails = 0;
  ForEachGraph([&](RandomGraph* random) {
    for (bool reduce : {false, true}) {
      const NodePlan plan = random->Plan(reduce);
      std::set<int> noted, records;
      int waits = 0;
      for (size_t i = 0; i < random->nodes.size(); ++i) {
        const NodePlan::Node& planned = plan.nodes[random->nodes[i]->id()];
        EXPECT_EQ(planned.group, random->groups[i]) << "n" << i;
        EXPECT_FALSE(planned.after_all) << "n" << i;
        std::map<int, int> events, of_tails;  // by group
        for (int id : planned.events) ++events[plan.nodes[id].group];
        for (int id : planned.tails) ++of_tails[plan.nodes[id].group];
        for (const auto& [group, count] : events) {
          EXPECT_EQ(count, 1) << "n" << i;
          EXPECT_EQ(of_tails.count(group), 0) << "n" << i;
        }
        const bool changes = random->facts[i].changes_state;
        EXPECT_FALSE(changes && !events.empty()) << "n" << i;
        for (const auto& [group, count] : of_tails) {
          EXPECT_TRUE(count > 1 || changes) << "n" << i;
        }
        waits += events.size() + of_tails.size();
        tails += of_tails.size();
        records.insert(planned.events.begin(), planned.events.end());
        noted.insert(planned.events.begin(), planned.events.end());
        noted.insert(planned.tails.begin(), planned.tails.end());
      }
      EXPECT_EQ(plan.waits, waits);
      for (const Node* node : random->nodes) {
        const NodePlan::Node& planned = plan.nodes[node->id()];
        EXPECT_EQ(planned.noted, noted.count(node->id()) > 0) << node->name();
        EXPECT_EQ(planned.records, records.count(node->id()) > 0)
            << node->name();
      }
      EXPECT_EQ(plan.waits_left_out,
                random->needs.size() - random->WaitsOf(plan).size());
    }
  });
  EXPECT_GT(tails, kSeeds);
}

TEST_F(RandomNodePlanTest, EachGroupButHomeStartsSomewhere) {
  int starts = 0, goes_on = 0;
  ForEachGraph([&](RandomGraph* random) {
    const NodePlan plan = random->Plan(/*reduce=*/true);
    std::vector<bool> started(random->options.group_count);
    for (size_t i = 0; i < random->nodes.size(); ++i) {
      const bool starts_here = plan.nodes[random->nodes[i]->id()].starts;
      const int group = random->groups[i];
      if (starts_here) {
        started[group] = true;
        EXPECT_NE(group, random->options.home) << "n" << i;
        EXPECT_TRUE(random->facts[i].launched) << "n" << i;
      } else if (random->facts[i].launched) {
        // Numbers are in the order of the edges.
        EXPECT_TRUE(group == random->options.home || started[group])
            << "n" << i;
      }
      (starts_here ? starts : goes_on) += 1;
    }
  });
  // Else the graphs would show little.
  EXPECT_GT(starts, kSeeds);
  EXPECT_GT(goes_on, kSeeds);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
