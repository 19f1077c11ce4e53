// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

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
  // Gives `policy` to the nodes whose names start with `prefix`.
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
  // Nodes whose names start with the prefix.
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
  options_.caller_group = 1;
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
  options_.caller_group = 1;
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

// A chain goes where its marked nodes are.
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
  options_.caller_group = 2;
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
    // All groups, if the attribute gives no number or more than there are.
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
  // Nothing is measured.
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
  options_.caller_group = 1;
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
  options_.caller_group = 1;
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
