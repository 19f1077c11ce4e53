// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups the nodes of a plan get from a policy.

#include "tensorflow/core/common_runtime/multistream/node_level/node_policy.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan_fixture.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow::multistream {
namespace {

class NodePolicyTest : public NodePlanTest {};
TEST_P(NodePolicyTest, GivesGroups) {
  DrawAndPlan(GetParam().graph);
  EXPECT_EQ(Places(), GetParam().expected);
}

//   from --> NAMEa1 --> NAMEa2 --> NAMEjoin
//       '--> NAMEb1 --> NAMEb2 ----'
std::string Fork(const std::string& from, const std::string& name) {
  return absl::Substitute(
      "; $0 -> $1a1 -> $1a2; $0 -> $1b1 -> $1b2; $1a2 $1b2 -> $1join; ", from,
      name);
}

const PlanCase kReasons[] = {
    {"BranchesGoApart", "caller=1 policy=full_graph" + Fork("x", ""),
     "0 policy: b1 b2; 1 policy: x a1 a2 join"},
    {"EveryOtherReasonGoesBeforeAPolicy",
     "caller=1 propagate=1 file=3:.*/file policy=full_graph"
     "; scope@2 -> follows; x/file scratch(scratch) recv(_Recv) arg(_Arg)"
     "; leader(leader) -> send(_Send); free",
     "0 default: scratch; 0 leader: leader"
     "; 1 default: recv arg send; 1 policy: free; 2 propagated: follows"
     "; 2 scope: scope; 3 file: x/file"},
    {"AChainGoesWhereItsMarkedNodesAre",
     "policy=full_graph; x -> a1 -> a2; x -> b1@3 -> b2; a2 b2 -> join",
     "0 policy: x a1 a2 join; 3 policy: b2; 3 scope: b1"},
    {"AnAttributeGivesItsNodesAPolicy",
     "caller=2 attr=full_graph" + Fork("x", "with_") +
         "attr=" + Fork("y", "without_"),
     "0 policy: with_b1 with_b2"
     "; 2 default: y without_a1 without_a2 without_b1 without_b2"
     " without_join; 2 policy: x with_a1 with_a2 with_join"},
    {"AnAttributeBeatsThePolicyOfTheOthers",
     "policy=full_graph attr=none" + Fork("x", "with_") +
         "attr=" + Fork("y", "without_"),
     "0 default: x with_a1 with_a2 with_b1 with_b2 with_join"
     "; 1 policy: y without_a1 without_a2 without_join"
     "; 2 policy: without_b1 without_b2"},
    {"OneGraphMayHaveSeveralPolicies",
     "attr=full_graph:2" + Fork("x", "full_") + "attr=embedding" +
         Fork("y", "other_"),
     "0 policy: x full_a1 full_a2 full_join y other_a1 other_a2 other_b1"
     " other_b2 other_join; 1 policy: full_b1 full_b2"},
    {"WhatIsNotLaunchedStaysWithTheCaller",
     "caller=1 policy=full_graph; const(Const) -> ^a -> join(NoOp)",
     "1 default: const join; 1 policy: a"},
    {"FixedNodesThatHandOnAreNotGivenAgain",
     "policy=full_graph; x -> id@3(Identity) -> host@2(host) -> y",
     "0 policy: y; 2 scope: host; 3 policy: x; 3 scope: id"},
};
INSTANTIATE_TEST_SUITE_P(Reasons, NodePolicyTest, ::testing::ValuesIn(kReasons),
                         CaseName);

// A policy may use more groups than it is given: the caller's, and those of
// marked nodes.
const std::string kSixBranches =
    "; x -> a b c d e; x -> f1 -> f2; a b c d e f2 -> join";
const PlanCase kCounts[] = {
    {"Three", "attr=full_graph:3" + kSixBranches,
     "0 policy: x f1 f2 join; 1 policy: a c e; 2 policy: b d"},
    {"UpToTheCallers", "caller=3 attr=full_graph:2" + kSixBranches,
     "0 policy: a d; 1 policy: b e; 2 policy: c; 3 policy: x f1 f2 join"},
    {"UpToTheLastFixed", "attr=full_graph:2; x -> fixed@3" + kSixBranches,
     "0 policy: x f1 f2 join; 1 policy: a c; 2 policy: b d; 3 policy: e"
     "; 3 scope: fixed"},
    {"TheCallersGetsTheLongestPathAndWhatHasNoPolicy",
     "caller=2 policy=full_graph; x if(host,bool) -> split(Switch)"
     "; split:1 -> yes; split:0 -> no; yes no -> merge(Merge)"
     "; merge -> long1 -> long2 -> long3; merge -> short; long3 short -> join",
     "0 policy: short; 2 default: split yes no merge"
     "; 2 policy: x if long1 long2 long3 join"},
};
INSTANTIATE_TEST_SUITE_P(Counts, NodePolicyTest, ::testing::ValuesIn(kCounts),
                         CaseName);

// Nodes that get a neighbour's group.
const PlanCase kBeside[] = {
    {"AVariableIsReadWhereItIsUsed",
     "policy=full_graph; v(VarHandleOp) -> read_a(ReadVariableOp)"
     "; w(VarHandleOp) -> read_b(ReadVariableOp)"
     "; x read_a -> a; x read_b -> b; a b -> join",
     "0 policy: v read_a x a join; 1 policy: w read_b b"},
    {"ASharedVariableIsReadWhereItIsUsedMost",
     "policy=full_graph; v(VarHandleOp) -> read(ReadVariableOp)"
     "; x read -> a1; a1 read -> a2; x -> b1; b1 read -> b2; a2 b2 -> join",
     "0 policy: v read x a1 a2 join; 1 policy: b1 b2"},
    {"ASharedVariableIsReadInTheOtherBranchIfItIsUsedMostThere",
     "policy=full_graph; v(VarHandleOp) -> read(ReadVariableOp)"
     "; x -> a1; a1 read -> a2; x read -> b1; b1 read -> b2; a2 b2 -> join",
     "0 policy: x a1 a2 join; 1 policy: v read b1 b2"},
    {"AVariableIsReadForWhatItIsHandedOnTo",
     "policy=full_graph; v(VarHandleOp) -> read(ReadVariableOp) -> id(Identity)"
     "; x id -> a -> a2 -> a3; x -> b; a3 b -> join",
     "0 policy: v read id x a a2 a3 join; 1 policy: b"},
    // A node after a control edge does not use the variable's value.
    {"AVariableIsReadForWhatTakesItsValue",
     "policy=full_graph; v(VarHandleOp) -> read(ReadVariableOp)"
     "; x ^read -> after1@1 after2@1; x read -> use@2",
     "1 policy: x; 1 scope: after1 after2; 2 policy: v read; 2 scope: use"},
    {"AVariableThatIsReadForNothingGetsNoGroup",
     "policy=full_graph; v(VarHandleOp) -> read(ReadVariableOp)"
     "; x -> a b -> join",
     "0 default: v read; 0 policy: x a join; 1 policy: b"},
    // With `^host`, the order is the host's.
    {"WhatHandsOnGoesWithItsProducer",
     "policy=full_graph; shape(Const,int32); x -> a b c"
     "; a shape -> reshape(Reshape); b -> id1(Identity) -> id2(Identity)"
     "; c -> host(host); reshape id2 host ^host -> join",
     "0 default: shape; 0 policy: x a reshape join; 1 policy: b id1 id2"
     "; 2 policy: c host"},
    // A wait for host covers both.
    {"WhatHandsSeveralOnGoesWithTheLastOfThem",
     "policy=full_graph; a@0 -> b@3; a b -> host(host); b a -> other(host)",
     "0 scope: a; 3 policy: host other; 3 scope: b"},
    {"WhatHandsOnIsNoBranch",
     "policy=full_graph; shape(Const,int32); x -> id(Identity)"
     "; id shape -> reshape(Reshape); x -> b host(host)"
     "; b reshape host ^host -> join",
     "0 default: shape; 0 policy: x id reshape b host join"},
    {"WhatHasAllItsOutputsOnTheHostIsNoBranch",
     "policy=full_graph; x -> b host(host,host); b ^host -> join",
     "0 policy: x b host join"},
    {"WhatHasSomeOfItsOutputsOnTheHostIsABranch",
     "policy=full_graph; x -> b half(host,device); b ^half -> join",
     "0 policy: x b join; 1 policy: half"},
    {"OrderThroughWhatHandsOnCounts",
     "policy=full_graph; a -> id(Identity) -> ^host(host) -> b",
     "0 policy: a id host b"},
};
INSTANTIATE_TEST_SUITE_P(Beside, NodePolicyTest, ::testing::ValuesIn(kBeside),
                         CaseName);

// A pass-through op with more inputs gets its group by the policy.
TEST_F(NodePlanTest, UpToSixtyFourNodesAreHandedOnToOne) {
  std::string many;
  for (int i = 0; i < 64; ++i) absl::StrAppend(&many, "^m", i, "@3 ");
  // All other nodes stay in the caller's group.
  Node* with_64 = Draw("policy=embedding; " + many + "-> with_64(host)");
  Node* with_65 = Draw("^m64@3 " + many + "-> with_65(host)");
  Plan();
  EXPECT_EQ(Of(with_64).group, 3);
  EXPECT_EQ(Of(with_65).group, 0);
}

// Costs: numbers in parentheses. The branch that takes longest stays alone in
// the caller's group. Policy `cost` splits what gains by it.
const PlanCase kCosts[] = {
    {"TheSecondIsLongest",
     "policy=full_graph groups=2; x -> a(10) b(100) c(10) -> join",
     "0 policy: x b join; 1 policy: a c"},
    {"WhatIsNotMeasuredCountsAsSmall",
     "policy=full_graph groups=2; x -> a b c(100) -> join",
     "0 policy: x c join; 1 policy: a b"},
    {"LongBranchesGoApart",
     "policy=cost groups=3; x -> a(100) b(100) c(100) -> join",
     "0 policy: x a join; 1 policy: b; 2 policy: c"},
    {"WhatAWaitCostsCounts",
     "policy=cost groups=3 wait=1000; x -> a(100) b(100) c(100) -> join",
     "0 policy: x a b c join"},
};
INSTANTIATE_TEST_SUITE_P(Costs, NodePolicyTest, ::testing::ValuesIn(kCosts),
                         CaseName);

// Control flow: nodes that may be dead or run many times stay with the caller.
const std::string kLoop =
    " -> enter(Enter); enter enter -> merge(Merge) -> c(host,bool)"
    " -> cond(LoopCond); merge cond -> switch(Switch); switch:0 -> exit(Exit)"
    "; switch:1 -> body; ";
const std::string kInnerLoop =
    " -> enter2(Enter); enter2 enter2 -> merge2(Merge) -> c2(host,bool)"
    " -> cond2(LoopCond); merge2 cond2 -> switch2(Switch)"
    "; switch2:0 -> exit2(Exit); switch2:1 -> deep"
    " -> next2(NextIteration) -> merge2; ";
const PlanCase kControlFlow[] = {
    {"NodesInABranchGetNoGroupAndThoseAfterItDo",
     "policy=full_graph" + Fork("x", "before_") +
         "before_join if(host,bool) -> split(Switch)" +
         Fork("split:1", "yes_") +
         "split:0 -> no; yes_join no -> merge(Merge)" + Fork("merge", "after_"),
     "0 default: split yes_a1 yes_a2 yes_b1 yes_b2 yes_join no merge"
     "; 0 policy: x before_a1 before_a2 before_join if after_a1 after_a2"
     " after_join; 1 policy: before_b1 before_b2 after_b1 after_b2"},
    {"ABranchInABranchIsStillInOneAfterItsMerge",
     "policy=full_graph; x if(host,bool) -> outer(Switch); outer:1 -> y"
     "; y if -> inner(Switch); inner:1 -> deep; inner:0 -> inner_no"
     "; deep inner_no -> inner_merge(Merge)" +
         Fork("inner_merge", "between_") +
         "outer:0 -> no; between_join no -> merge(Merge)" +
         Fork("merge", "after_"),
     "0 default: outer y inner deep inner_no inner_merge between_a1"
     " between_a2 between_b1 between_b2 between_join no merge"
     "; 0 policy: x if after_a1 after_a2 after_join"
     "; 1 policy: after_b1 after_b2"},
    // Constants and reads of a branch hang on its pivot by a control edge only.
    {"ControlEdgesLeadIntoABranchToo",
     "policy=full_graph; x if(host,bool) -> split(Switch)"
     "; split:1 -> pivot(Identity); v(VarHandleOp) ^pivot"
     " -> read(ReadVariableOp) -> yes; split:0 -> no; yes no -> merge(Merge)" +
         Fork("merge", "after_"),
     "0 default: split pivot read yes no merge"
     "; 0 policy: x if v after_a1 after_a2 after_join"
     "; 1 policy: after_b1 after_b2"},
    {"NodesInALoopGetNoGroupAndThoseAfterAndBesideItDo",
     "policy=full_graph; x" + kLoop + Fork("body", "in_") +
         "in_join -> next(NextIteration) -> merge" + Fork("exit", "after_") +
         Fork("x", "beside_") + "after_join beside_join -> end",
     "0 default: enter merge c cond switch exit body in_a1 in_a2 in_b1"
     " in_b2 in_join next; 0 policy: x after_a1 after_a2 after_join end"
     "; 1 policy: beside_a1 beside_a2 beside_join"
     "; 2 policy: beside_b1 beside_b2; 3 policy: after_b1 after_b2"},
    {"ALoopInALoopIsStillInOneAfterItsExit",
     "policy=full_graph; x" + kLoop + "body" + kInnerLoop +
         Fork("exit2", "between_") +
         "between_join -> next(NextIteration) -> merge" +
         Fork("exit", "after_"),
     "0 default: enter merge c cond switch exit body enter2 merge2 c2 cond2"
     " switch2 exit2 deep next2 between_a1 between_a2 between_b1 between_b2"
     " between_join next; 0 policy: x after_a1 after_a2 after_join"
     "; 1 policy: after_b1 after_b2"},
    {"ABranchInALoopEndsWithTheLoop",
     "policy=full_graph; x" + kLoop +
         "body if(host,bool) -> split(Switch); split:1 -> yes; split:0 -> no"
         "; yes no -> both(Merge) -> next(NextIteration) -> merge" +
         Fork("exit", "after_"),
     "0 default: enter merge c cond switch exit body split yes no both next"
     "; 0 policy: x if after_a1 after_a2 after_join"
     "; 1 policy: after_b1 after_b2"},
    {"ALoopInABranchEndsInTheBranch",
     "policy=full_graph; x if(host,bool) -> split(Switch); split:1 -> yes" +
         kInnerLoop + Fork("exit2", "still_") +
         "split:0 -> no; still_join no -> both(Merge)" + Fork("both", "after_"),
     "0 default: split yes enter2 merge2 c2 cond2 switch2 exit2 deep next2"
     " still_a1 still_a2 still_b1 still_b2 still_join no both"
     "; 0 policy: x if after_a1 after_a2 after_join"
     "; 1 policy: after_b1 after_b2"},
    {"AFixedGroupInALoopIsKept",
     "policy=full_graph; x" + kLoop +
         "body -> fixed@3 -> next(NextIteration) -> merge"
         "; exit -> a1 -> a2; exit -> b1@3 -> b2; a2 b2 -> join",
     "0 default: enter merge c cond switch exit body next"
     "; 0 policy: x a1 a2 join; 3 policy: b2; 3 scope: fixed b1"},
    {"AVariableThatALoopUsesIsReadInTheCallersGroup",
     "caller=1 policy=full_graph; x" + kLoop +
         "v(VarHandleOp) -> read(ReadVariableOp) -> weights(Enter)"
         "; body weights -> use -> next(NextIteration) -> merge" +
         Fork("exit", "after_"),
     "0 policy: after_b1 after_b2"
     "; 1 default: enter merge c cond switch exit body weights use next"
     "; 1 policy: x v read after_a1 after_a2 after_join"},
};
INSTANTIATE_TEST_SUITE_P(ControlFlow, NodePolicyTest,
                         ::testing::ValuesIn(kControlFlow), CaseName);

const PlanCase kEmbeddings[] = {
    {"LookupsGoApartWithWhatPreparesAndPoolsThem",
     "policy=embedding groups=2; t0(VarHandleOp) ids0(int32)"
     " -> lookup0(ResourceGather) -> pool0; t1(VarHandleOp) ids1(int32)"
     " -> lookup1(ResourceGather) -> pool1; pool0 pool1 -> concat"
     "; v(VarHandleOp) -> read(ReadVariableOp); concat read -> product(MatMul)",
     "0 policy: t0 ids0 lookup0 pool0 concat v read product"
     "; 1 policy: t1 ids1 lookup1 pool1"},
    // The table is read in the group that looks up its rows.
    {"LookupsInValuesOfVariablesGoApartToo",
     "policy=embedding groups=2; bottom; v(VarHandleOp)"
     " -> table(ReadVariableOp) -> id(Identity); axis(Const,int32)"
     "; id ids(int32) axis -> lookup(GatherV2); lookup bottom -> dense(MatMul)",
     "0 default: axis; 0 policy: bottom dense"
     "; 1 policy: v table id ids lookup"},
    // A node with inputs from one lookup only goes with the lookup, unless the
    // model's dense part starts there. Without `other`, bottom would join, too.
    {"TheDensePartDoesNotGoWithALookup",
     "policy=embedding groups=2; x -> bottom -> other"
     "; table(VarHandleOp) ids(int32) -> lookup(ResourceGather)"
     "; lookup bottom -> matmul(MatMul) batch(BatchMatMulV2) einsum(Einsum)"
     " conv2(Conv2D) conv3(Conv3D) depthwise(DepthwiseConv2dNative) add(AddV2)"
     " mul(Mul) bias(BiasAdd)",
     "0 policy: x bottom other matmul batch einsum conv2 conv3 depthwise"
     "; 1 policy: table ids lookup add mul bias"},
};
INSTANTIATE_TEST_SUITE_P(Embeddings, NodePolicyTest,
                         ::testing::ValuesIn(kEmbeddings), CaseName);

TEST_F(NodePlanTest, LookupsAreGathersOfVariables) {
  Draw(
      "v(VarHandleOp) -> t(ReadVariableOp) -> id(Identity) -> cast(Cast)"
      "; old(VariableV2) -> id_old(Identity); const(Const); i(int32)"
      "; computed -> id_computed(Identity); t -> op; t i -> reshaped(Reshape)");
  int count = 0;
  auto is_lookup = [&](const std::string& inputs, const std::string& op) {
    const Node* node =
        Draw(absl::StrCat(inputs, " -> n", ++count, "(", op, ")"));
    return IsEmbeddingLookup(*node);
  };
  EXPECT_TRUE(is_lookup("v i", "ResourceGather"));
  EXPECT_TRUE(is_lookup("v i", "ResourceGatherNd"));
  for (const char* table : {"t", "old", "const", "id", "id_old", "cast"}) {
    EXPECT_TRUE(is_lookup(absl::StrCat(table, " i i"), "GatherV2")) << table;
  }
  for (const char* table : {"computed", "id_computed", "op", "reshaped"}) {
    EXPECT_FALSE(is_lookup(absl::StrCat(table, " i i"), "GatherV2")) << table;
  }
  for (const char* op : {"Gather", "GatherNd"}) {
    EXPECT_TRUE(is_lookup("t i", op)) << op;
    EXPECT_FALSE(is_lookup("computed i", op)) << op;
  }
  for (const std::string op :
       {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) {
    EXPECT_TRUE(is_lookup("t i i", op)) << op;
    EXPECT_TRUE(is_lookup("t i i i", op + "WithNumSegments")) << op;
    EXPECT_FALSE(is_lookup("computed i i", op)) << op;
    EXPECT_FALSE(is_lookup("t i i i", op + "Grad")) << op;
    EXPECT_FALSE(is_lookup("t i i i", op + "GradV2")) << op;
  }
  EXPECT_FALSE(is_lookup("v", "ReadVariableOp"));
  EXPECT_FALSE(is_lookup("t t", "MatMul"));
  EXPECT_FALSE(is_lookup("t i i", "UnsortedSegmentSum"));
  EXPECT_FALSE(is_lookup("v i t", "ResourceScatterAdd"));
}

// Which policy a node has: the attribute says, then the options.

TEST_F(NodePlanTest, TheAttributeThenTheOptionsSayWhichPolicy) {
  int count = 0;
  auto policy_of = [&](const std::string& attribute) {
    const Node* node = Draw(absl::StrCat("attr=", attribute, "; n", ++count));
    absl::StatusOr<NodePolicy> policy = PolicyOf(*node, options_);
    EXPECT_TRUE(policy.ok()) << policy.status();
    return policy.value_or(NodePolicy());
  };
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kNone, 4, true}));
  options_.policy = Policy::kEmbedding;
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kEmbedding, 4, true}));
  EXPECT_EQ(policy_of("Full_Graph:3"),
            (NodePolicy{Policy::kFullGraph, 3, true}));
  EXPECT_EQ(policy_of("full_graph:9:always"),
            (NodePolicy{Policy::kFullGraph, 4, false}));
  EXPECT_EQ(policy_of("COST:0"), (NodePolicy{Policy::kCost, 4, true}));
  EXPECT_EQ(policy_of("user_defined:2").policy, Policy::kNone);
  // Another policy may stand for `cost`, and for no other.
  options_.guess.cost_policy = Policy::kFullGraph;
  EXPECT_EQ(policy_of("cost:2"), (NodePolicy{Policy::kFullGraph, 2, true}));
  EXPECT_EQ(policy_of("embedding:2"),
            (NodePolicy{Policy::kEmbedding, 2, true}));
  // Without a split, policies that are measured do not count.
  options_.guess.split = false;
  EXPECT_EQ(policy_of("").policy, Policy::kNone);
  EXPECT_EQ(policy_of("embedding:2").policy, Policy::kNone);
  EXPECT_EQ(policy_of("embedding:2:always").policy, Policy::kEmbedding);
  // Nothing is measured.
  options_.measure = false;
  EXPECT_EQ(policy_of("embedding:2"),
            (NodePolicy{Policy::kEmbedding, 2, false}));
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kEmbedding, 4, false}));
  options_.policy = Policy::kCost;
  EXPECT_EQ(policy_of(""), (NodePolicy{Policy::kFullGraph, 4, false}));
}

TEST_F(NodePlanTest, AWrongAttributeIsInvalidAndNamesTheNode) {
  Node* wrong = Draw("right -> wrong");
  for (const char* text :
       {"", "full", "graph:2", ":2", "cost:", "cost:-1", "cost:many",
        "cost:1.5", "cost 2", "cost:99999999999", "cost:2:", "cost:2:never",
        "cost::always", "cost:2:always:"}) {
    wrong->ClearAttr(kStreamPolicyAttr);
    wrong->AddAttr(kStreamPolicyAttr, text);
    const absl::Status status = TryPlan();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "{{node wrong}}") &&
        absl::StrContains(status.message(), absl::StrCat("\"", text, "\"")))
        << status;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
