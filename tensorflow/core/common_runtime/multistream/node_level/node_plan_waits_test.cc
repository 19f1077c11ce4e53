// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

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
  options_.caller_group = 2;
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
  // Nothing is known of the third output.
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

// A variable may change long after the inputs of the change were made: other
// ops that use the variable may have been launched in that group since.

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
  // b and c may be launched in either order.
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
