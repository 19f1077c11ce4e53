// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"

namespace tensorflow::multistream {
namespace {

class PlacesTest : public NodePlanTest {};
TEST_P(PlacesTest, Are) {
  DrawAndPlan(GetParam().graph);
  EXPECT_EQ(Places(), GetParam().expected);
}

const PlanCase kPlaces[] = {
    {"ANodeWithoutAnyReasonStaysWithTheCaller", "caller=3; a", "3 default: a"},
    {"AScopeDecides", "caller=1; a@2 b@0", "0 scope: b; 2 scope: a"},
    {"EachReasonGoesBeforeTheNext",
     "caller=1 propagate=1 file=0:x/.*; nothing"
     "; from@3 -> x/leader@2(leader) x/file@2 scope@2 input",
     "0 file: x/file; 0 leader: x/leader; 1 default: nothing"
     "; 2 scope: scope; 3 propagated: input; 3 scope: from"},
    {"TheLeaderGoesBeforeAFileThatSaysAnotherGroup", "file=2:a; a(leader)",
     "0 leader: a"},
    {"TheCallerGoesBeforeAllForTransfersAndArguments",
     "caller=1 propagate=1 policy=full_graph file=3:.*/file; from@2 -> s(_Send)"
     " s/scope@2(_Send) s/file@2(_Send) host/file@2(_HostSend); r(_Recv)"
     " r/scope@2(_Recv) r/file(_Recv) arg(_Arg) arg/scope@2(_Arg)"
     " arg/file(_Arg)",
     "1 default: s s/scope s/file host/file r r/scope r/file arg arg/scope"
     " arg/file; 2 scope: from"},
    {"TheLeaderHasSendsThatMustBeThere",
     "caller=1; from@2 -> send(_Send,leader)", "0 leader: send; 2 scope: from"},
    {"ScratchStaysWithTheLeaderUnlessAGroupIsGiven",
     "caller=3 propagate=1 file=1:file; plain(scratch) scoped@2(scratch)"
     " file(scratch); from@2 -> follows(scratch)",
     "0 default: plain; 1 file: file; 2 propagated: follows"
     "; 2 scope: scoped from"},
    {"ANodeFollowsItsFirstDataInputThatHasAGroup",
     "propagate=1 file=3:three; none leader(leader) two@2 three -> a"
     "; three two -> b -> c; none leader -> d; d c -> e; ^two -> f",
     "0 default: none d f; 0 leader: leader; 2 propagated: a"
     "; 2 scope: two; 3 file: three; 3 propagated: b c e"},
    {"ANodeFollowsNothingUnlessToldTo", "two@2 -> a",
     "0 default: a; 2 scope: two"},
};
INSTANTIATE_TEST_SUITE_P(Places, PlacesTest, ::testing::ValuesIn(kPlaces),
                         CaseName);

// One file serves all GPUs, which may have different numbers of groups.
class LackedGroupTest : public NodePlanTest {};
TEST_P(LackedGroupTest, IsInvalid) {
  Draw(GetParam().graph);
  const absl::Status status = TryPlan();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StartsWith(
      status.message(),
      "Node {{node far}} (NodePlanTestOp) is in stream group " +
          GetParam().expected))
      << status;
}

const PlanCase kLacked[] = {
    {"OfAScope", "a@3 far@4", "4, and the GPU has 4"},
    {"Negative", "groups=2; far@-1", "-1, and the GPU has 2"},
    {"OfTheFile", "groups=2 file=3:far; far@1", "3, and the GPU has 2"}};
INSTANTIATE_TEST_SUITE_P(Lacked, LackedGroupTest, ::testing::ValuesIn(kLacked),
                         CaseName);

TEST_F(NodePlanTest, GroupsAreUsedByWhatIsLaunched) {
  DrawAndPlan("a@1 b@3 c@0(idle)");
  EXPECT_EQ(plan_.groups_used, std::vector<bool>({false, true, false, true}));
}

class StartsTest : public NodePlanTest {};
TEST_P(StartsTest, Are) {
  DrawAndPlan(GetParam().graph);
  EXPECT_EQ(Starts(), GetParam().expected);
}

const PlanCase kStarts[] = {
    {"TheFirstNodeOfEachBranch",
     "x -> a1@1 -> a2@1; x -> b1@2; b1 b1 -> b2@2 -> b3@2; a2 b3 -> sum",
     "a1 b1"},
    {"ABranchThatNeedsNothing",
     "w(VarHandleOp) -> read@2(ReadVariableOp); a1@1 -> a2@1"
     "; arg(_Arg) read const(Const) -> b1@2",
     "a1 b1"},
    // Identity launches nothing, so no other group comes in between. The node
    // `late` is as deep as the chain itself.
    {"AChainIsOneBranchWhateverItIsGivenOnTheWay", R"(
       w(VarHandleOp) -> own@1(ReadVariableOp) other(ReadVariableOp)
       x arg(_Arg) -> a1@1
       a1 own -> a2@1
       a2 other -> a3@1
       a3 arg -> a4@1
       const(Const) a4 -> a5@1 -> id@1(Identity) -> a6@1
       a6 -> elsewhere@2(Identity) -> a7@1
       a7 recv(_Recv) -> a8@1
       ^a8 -> late(_Recv) -> a9@1)",
     "a1"},
    {"NotWhatOnlyHandsOn",
     "x -> id@1(Identity); w(VarHandleOp) ^x -> read@1(ReadVariableOp)"
     "; id read -> a@1",
     "a"},
    {"ABranchThatIsEnteredAgain", "x -> a1@1 -> b1@2 -> a2@1 -> a3@1",
     "a1 a2 b1"},
    // When the loss is there, the threads of all forward parts are gone.
    {"ABackwardPassThoughItTakesItsBranchsActivations", R"(
       x(_Arg)
       w(VarHandleOp) -> w1@1(ReadVariableOp) w2@2(ReadVariableOp)
       x w1 -> 1_first@1; 1_first w1 -> 1_end@1
       x w2 -> 2_first@2; 2_first w2 -> 2_end@2
       1_end 2_end -> loss
       1_first loss -> 1_back@1; 1_back x 1_first -> 1_grad@1 -> u1@0(changes)
       2_first loss -> 2_back@2; 2_back x 2_first -> 2_grad@2 -> u2@0(changes)
       )",
     "1_back 1_first 2_back 2_first"},
    {"NotIfADeeperInputIsOfItsOwnGroup",
     "x -> a1@1 -> a2@1; x -> b@2; x a2 b -> a3@1", "a1 b"},
    {"NotIfOneOfEquallyDeepInputsIsOfItsOwnGroup",
     "a1@1 b1@2 -> a2@1; b1 a1 -> a3@1 c1@3", "a1 b1 c1"},
    {"ControlInputsAreNeededToo",
     "a1@1; deep1 -> deep2; a1 ^deep2 -> a2@1; ^deep2 -> join(NoOp)"
     "; a1 ^join -> a3@1; ^a1 -> ^next(NoOp) -> a4@1",
     "a1 a2 a3"},
    {"NodesOfTheCallersGroupNever", "a@1 -> leader@0 -> home; alone", "a"},
    {"NodesOfAnotherCallersGroupNever",
     "caller=2; a@1 -> leader@0 -> home; alone", "a leader"},
};
INSTANTIATE_TEST_SUITE_P(Starts, StartsTest, ::testing::ValuesIn(kStarts),
                         CaseName);

// What nodes wait for. node_plan_random_test has the same for random graphs.

class WaitsTest : public NodePlanTest {};
TEST_P(WaitsTest, Are) {
  DrawAndPlan(GetParam().graph);
  EXPECT_EQ(Waits(), GetParam().expected);
}

// while (...) { x = change(x); y = body(invariant) after change }, where a walk
// of the graph may come to `body` by way of `invariant` before it comes to
// `change`.
std::string Loop(const std::string& entries) {
  return "start@0 -> " + entries + R"(
       entered entered -> merge(Merge) -> if(host,bool) -> cond(LoopCond)
       merge cond -> split(Switch)
       split:1 -> ^change@1 -> ^join(NoOp)
       invariant ^join -> body@2 -> next(NextIteration) -> merge)";
}

const PlanCase kWaits[] = {
    {"DefaultNodesAreInTheCallersGroup", "a@2 -> b", "b: a"},
    {"AControlTriggerWaitsForAll", "^a@1 -> ^trigger@1(ControlTrigger) -> b@1",
     "trigger: all"},
    {"AControlTriggerThatIsNotLaunchedHandsItsWaitOn",
     "^a@2 -> ^trigger(ControlTrigger,idle) -> b@1", "b: a, all"},

    // A variable may change long after the inputs of the change were made:
    // other ops that use the variable may have been launched in that group
    // since.
    {"AChangeOfStateWaitsForTheTailEvenOfOneProducer",
     "a@1 -> change@0(changes)", "change: [a]"},
    {"AChangeOfStateIsWaitedForByItsEvent", "^change@0(changes) -> b@1",
     "b: change"},

    // Which waits are left out. The drawing in node_plan.h, where e needs a and
    // c, too, comes first.
    {"WaitsThatOthersImplyAreLeftOut",
     "a@1 -> b@1; w@2 -> c@2; a b c -> d@2; a b c d -> e@1", "d: b; e: d"},
    // b and c may be launched in either order.
    {"NodesOfOneGroupWithoutAPathImplyNothing", "a@0 -> b@1 c@1", "b: a; c: a"},
    // A node on the path may be dead, and so not launched.
    {"NothingIsLeftOutBesideASwitch",
     "a@0 -> b@1; a b -> c@2; a if(host,bool) -> switch(Switch)",
     "b: a; c: a, b"},
    {"NothingIsLeftOutBesideAMerge",
     "a@0 -> b@1; a b -> c@2; a b -> merge(Merge)", "b: a; c: a, b; merge: b"},
    {"NothingIsLeftOutBesideAnEnter",
     "a@0 -> b@1; a b -> c@2; a -> enter(Enter)", "b: a; c: a, b"},
    {"InALoopTooANodeComesAfterWhatIsHandedOn",
     Loop("invariant(Enter) entered(Enter)"),
     "change: split; body: invariant, change; next: body"},
    {"InALoopWithItsEntriesInTheOtherOrderToo",
     Loop("entered(Enter) invariant(Enter)"),
     "change: split; body: invariant, change; next: body"},
};
INSTANTIATE_TEST_SUITE_P(Waits, WaitsTest, ::testing::ValuesIn(kWaits),
                         CaseName);

// "^m0@1 ^m1@1 ...": nodes of group 1.
std::string Many(int count) {
  std::string many;
  for (int i = 0; i < count; ++i) absl::StrAppend(&many, "^m", i, "@1 ");
  return many;
}

TEST_F(NodePlanTest, UpToSixtyFourPredecessorsAreHandedOn) {
  Node* last = Draw(Many(64) + "-> ^join(NoOp) -> last@2");
  Plan();
  EXPECT_FALSE(Of(last).after_all);
  EXPECT_EQ(Of(last).waits[0].nodes.size(), 64);
}

TEST_F(NodePlanTest, MorePredecessorsThanThatBecomeAWaitForAll) {
  DrawAndPlan(Many(65) + R"(-> ^join(NoOp) -> last@2
      last -> after@0
      ^join -> ^next(NoOp) -> const(Const) -> through@3
      a@3 ^join -> too@2)");
  EXPECT_EQ(Waits(), "last: all; after: last; through: all; too: a, all");
}

TEST_F(NodePlanTest, WhatIsLaunchedMayHaveAnyNumberOfPredecessors) {
  Node* last = Draw(Many(65) + "-> last@2");
  Plan();
  EXPECT_FALSE(Of(last).after_all);
  EXPECT_EQ(Of(last).waits[0].nodes.size(), 65);
}

}  // namespace
}  // namespace tensorflow::multistream
