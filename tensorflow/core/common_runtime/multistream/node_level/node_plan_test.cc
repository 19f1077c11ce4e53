// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {
namespace {

// Where nodes go.

TEST_F(NodePlanTest, ANodeWithoutAnyReasonStaysWithTheCaller) {
  Node* a = Op("a", {});
  Plan();
  EXPECT_EQ(Place(a), "0 default");
  options_.caller_group = 3;
  Plan();
  EXPECT_EQ(Place(a), "3 default");
}

TEST_F(NodePlanTest, AScopeDecides) {
  options_.caller_group = 1;
  Node* a = Op("a", 2);
  Node* b = Op("b", 0);
  Plan();
  EXPECT_EQ(Place(a), "2 scope");
  EXPECT_EQ(Place(b), "0 scope");
}

TEST_F(NodePlanTest, EachReasonGoesBeforeTheNext) {
  options_.caller_group = 1;
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
  options_.caller_group = 1;
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

// The caller's group is the one that has waited for the arguments.
TEST_F(NodePlanTest, ArgumentsStayWithTheCaller) {
  options_.caller_group = 1;
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
  options_.caller_group = 1;
  Node* send = Send("send", "_Send", Op("from", 2), {});
  facts_["send"].leader_reason = "so it is";
  Plan();
  EXPECT_EQ(Place(send), "0 leader: so it is");
}

TEST_F(NodePlanTest, ScratchStaysWithTheLeaderUnlessAGroupIsGiven) {
  options_.caller_group = 3;
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

// One file serves all GPUs, which may have different numbers of groups.
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
  // Identity launches nothing, so no other group comes in between.
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

// When the loss is there, the threads of all branches' forward parts are gone.
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

TEST_F(NodePlanTest, NodesOfTheCallersGroupNeverStart) {
  Node* a = Op("a", 1);
  Node* leader = Op("leader", 0, {a});
  Op("home", {}, {leader});
  Op("alone", {});
  Plan();
  EXPECT_EQ(Starts(), "a");
  options_.caller_group = 2;
  Plan();
  EXPECT_EQ(Starts(), "a, leader");
  options_.caller_group = 1;
  Plan();
  EXPECT_EQ(Starts(), "leader");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
