// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups_fixture.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/stack_frame.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST_F(FunctionGroupsTest, EachScopeGetsItsOwnCopyOfAFunction) {
  Define("f", {Square("s")});
  AddCall("a", "f", 1);
  AddCall("b", "f", 2);
  AddCall("b2", "f", 2);
  AddCall("c", "f");
  const std::string original = library_.Find("f")->DebugString();
  Run();
  EXPECT_EQ(Called("a"), "f__stream_group_1");
  EXPECT_EQ(Called("b"), "f__stream_group_2");
  EXPECT_EQ(Called("b2"), "f__stream_group_2");
  EXPECT_EQ(Called("c"), "f");
  EXPECT_EQ(GroupIn("f__stream_group_1", "s"), 1);
  EXPECT_EQ(GroupIn("f__stream_group_1", "same"), 1);
  EXPECT_EQ(GroupIn("f__stream_group_2", "s"), 2);
  EXPECT_EQ(library_.Find("f")->DebugString(), original);
  EXPECT_EQ(library_.num_functions(), 3);
}

TEST_F(FunctionGroupsTest, TheLeadersGroupIsAScopeToo) {
  Define("f", {Square("s")});
  AddCall("a", "f", 0);
  Run();
  EXPECT_EQ(Called("a"), "f__stream_group_0");
  EXPECT_EQ(GroupIn("f__stream_group_0", "s"), 0);
}

TEST_F(FunctionGroupsTest, NestedCallsFollow) {
  Define("inner", {Square("s")});
  Define("outer", {Call("call", "inner")});
  AddCall("a", "outer", 3);
  Run();
  EXPECT_EQ(Called("a"), "outer__stream_group_3");
  EXPECT_EQ(GroupIn("outer__stream_group_3", "call"), 3);
  EXPECT_EQ(CalledIn("outer__stream_group_3", "call"), "inner__stream_group_3");
  EXPECT_EQ(GroupIn("inner__stream_group_3", "s"), 3);
}

TEST_F(FunctionGroupsTest, AScopeInsideTheFunctionWins) {
  Define("inner", {Square("s")});
  Define("outer", {Square("own", 2), Square("other"), Call("call", "inner", 2),
                   Call("rest", "inner")});
  AddCall("a", "outer", 1);
  Run();
  const std::string outer = "outer__stream_group_1";
  EXPECT_EQ(Called("a"), outer);
  EXPECT_EQ(GroupIn(outer, "own"), 2);
  EXPECT_EQ(GroupIn(outer, "other"), 1);
  EXPECT_EQ(CalledIn(outer, "call"), "inner__stream_group_2");
  EXPECT_EQ(CalledIn(outer, "rest"), "inner__stream_group_1");
}

TEST_F(FunctionGroupsTest, ScopesInsideFunctionsThatAreCalledOutsideAnyCount) {
  Define("leaf", {Square("s")});
  Define("scoped", {Call("call", "leaf", 2), Square("other")});
  Define("plain", {Square("s")});
  Define("outer", {Call("call", "scoped"), Call("plain_call", "plain")});
  AddCall("a", "outer");
  AddCall("b", "plain");
  Run();
  EXPECT_EQ(Called("a"), "outer__stream_groups");
  EXPECT_EQ(CalledIn("outer__stream_groups", "call"), "scoped__stream_groups");
  EXPECT_EQ(CalledIn("outer__stream_groups", "plain_call"), "plain");
  EXPECT_EQ(GroupIn("outer__stream_groups", "call"), std::nullopt);
  EXPECT_EQ(CalledIn("scoped__stream_groups", "call"), "leaf__stream_group_2");
  EXPECT_EQ(GroupIn("scoped__stream_groups", "other"), std::nullopt);
  EXPECT_EQ(Called("b"), "plain");
  EXPECT_EQ(library_.num_functions(), 4 + 3);
}

TEST_F(FunctionGroupsTest, AFunctionThatCallsItselfEnds) {
  Define("f", {Square("s"), Call("again", "f")});
  AddCall("a", "f", 1);
  AddCall("b", "f");
  Run();
  EXPECT_EQ(Called("a"), "f__stream_group_1");
  EXPECT_EQ(CalledIn("f__stream_group_1", "again"), "f__stream_group_1");
  EXPECT_EQ(Called("b"), "f");
}

TEST_F(FunctionGroupsTest, FunctionsThatCallEachOtherAcrossScopesEnd) {
  Define("f", {Call("to_g", "g")});
  Define("g", {Call("to_f", "f"), Call("to_h", "h", 1)});
  Define("h", {Call("to_g", "g", 2), Square("s")});
  AddCall("a", "f");
  Run();
  EXPECT_EQ(Called("a"), "f__stream_groups");
  EXPECT_EQ(CalledIn("f__stream_groups", "to_g"), "g__stream_groups");
  EXPECT_EQ(CalledIn("g__stream_groups", "to_f"), "f__stream_groups");
  EXPECT_EQ(CalledIn("g__stream_groups", "to_h"), "h__stream_group_1");
  EXPECT_EQ(CalledIn("h__stream_group_1", "to_g"), "g__stream_group_2");
  EXPECT_EQ(CalledIn("g__stream_group_2", "to_f"), "f__stream_group_2");
  EXPECT_EQ(CalledIn("g__stream_group_2", "to_h"), "h__stream_group_1");
}

TEST_F(FunctionGroupsTest, BothBranchesOfAConditionFollow) {
  Define("then", {Square("s")});
  Define("else", {Square("s")});
  for (const char* op : {"If", "StatelessIf"}) {
    Add(NodeBuilder(op, op)
            .Input(Constant(absl::StrCat(op, "_condition")))
            .Input(std::vector<NodeBuilder::NodeOut>{
                Constant(absl::StrCat(op, "_x"))})
            .Attr("Tout", DataTypeVector({DT_FLOAT}))
            .Attr("then_branch", FDH::FunctionRef("then").proto)
            .Attr("else_branch", FDH::FunctionRef("else").proto),
        1);
  }
  Run();
  for (const char* op : {"If", "StatelessIf"}) {
    EXPECT_EQ(Called(op, "then_branch"), "then__stream_group_1");
    EXPECT_EQ(Called(op, "else_branch"), "else__stream_group_1");
  }
  EXPECT_EQ(GroupIn("then__stream_group_1", "s"), 1);
  EXPECT_EQ(GroupIn("else__stream_group_1", "s"), 1);
}

TEST_F(FunctionGroupsTest, EveryBranchOfACaseFollows) {
  Define("f", {Square("s")});
  Define("g", {Square("s")});
  Node* index = Add(NodeBuilder("index", "Const")
                        .Attr("dtype", DT_INT32)
                        .Attr("value", Tensor(0)),
                    {});
  Add(NodeBuilder("case", "Case")
          .Input(index)
          .Input(std::vector<NodeBuilder::NodeOut>{Constant("x")})
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("branches",
                std::vector<NameAttrList>{FDH::FunctionRef("f").proto.func(),
                                          FDH::FunctionRef("g").proto.func()}),
      2);
  Run();
  std::vector<NameAttrList> branches;
  ASSERT_TRUE(GetNodeAttr(Find("case")->attrs(), "branches", &branches).ok());
  ASSERT_EQ(branches.size(), 2);
  EXPECT_EQ(branches[0].name(), "f__stream_group_2");
  EXPECT_EQ(branches[1].name(), "g__stream_group_2");
}

TEST_F(FunctionGroupsTest, ConditionAndBodyOfALoopFollow) {
  Define("body", {Square("s")});
  Define("condition", {Square("s")});
  Add(NodeBuilder("loop", "While")
          .Input(std::vector<NodeBuilder::NodeOut>{Constant("x")})
          .Attr("cond", FDH::FunctionRef("condition").proto)
          .Attr("body", FDH::FunctionRef("body").proto),
      1);
  Run();
  EXPECT_EQ(Called("loop", "cond"), "condition__stream_group_1");
  EXPECT_EQ(Called("loop", "body"), "body__stream_group_1");
}

TEST_F(FunctionGroupsTest, AFunctionCalledByItsNameAsAnOpFollows) {
  Define("f", {Square("s")});
  Define("outer", {{{"call"}, "f", {"x"}}});
  Node* x = Constant("x");
  Node* call = Add(NodeBuilder("call", "f", graph_->op_registry()).Input(x), 1);
  Node* user = Add(NodeBuilder("user", "Square").Input(call), {});
  Node* after = Constant("after");
  graph_->AddControlEdge(x, call);
  graph_->AddControlEdge(call, after);
  AddCall("a", "outer", 2);
  Run();
  Node* renamed = Find("call");
  EXPECT_EQ(renamed->type_string(), "f__stream_group_1");
  const Edge* edge;
  ASSERT_TRUE(renamed->input_edge(0, &edge).ok());
  EXPECT_EQ(edge->src(), x);
  ASSERT_TRUE(user->input_edge(0, &edge).ok());
  EXPECT_EQ(edge->src(), renamed);
  EXPECT_EQ(renamed->in_edges().size(), 2);
  EXPECT_EQ(renamed->out_edges().size(), 2);
  EXPECT_EQ(NodeOf("outer__stream_group_2", "call").op(), "f__stream_group_2");
}

TEST_F(FunctionGroupsTest, WhatXlaCompilesStaysAsItIs) {
  Define("f", {Square("s")});
  FunctionDef compiled = FunctionOf("compiled", {Square("s")});
  (*compiled.mutable_attr())["_XlaMustCompile"].set_b(true);
  Define(compiled);
  Define("outer", {Call("call", "compiled")});
  Add(CallOf("a", "f").Attr("_XlaMustCompile", true), 1);
  AddCall("b", "compiled", 1);
  Add(CallOf("c", "f").Attr("_xla_compile_id", "cluster"), 1);
  ExpectNothingToDo();
  Add(CallOf("d", "f").Attr("_XlaMustCompile", false), 1);
  AddCall("e", "outer", 1);
  Run();
  EXPECT_EQ(Called("d"), "f__stream_group_1");
  EXPECT_EQ(CalledIn("outer__stream_group_1", "call"), "compiled");
  // The call is one kernel, on its scope's group.
  EXPECT_EQ(GroupIn("outer__stream_group_1", "call"), 1);
}

TEST_F(FunctionGroupsTest, FunctionsOfInputPipelinesStayAsTheyAre) {
  Define("f", {Square("s")});
  Node* data = Add(NodeBuilder("range", "RangeDataset")
                       .Input(Index("from"))
                       .Input(Index("to"))
                       .Input(Index("step"))
                       .Attr("output_types", DataTypeVector({DT_INT64}))
                       .Attr("output_shapes", {TensorShape({})}),
                   1);
  Add(NodeBuilder("map", "MapDataset")
          .Input(data)
          .Input(std::vector<NodeBuilder::NodeOut>{})
          .Attr("f", FDH::FunctionRef("f").proto)
          .Attr("output_types", DataTypeVector({DT_FLOAT}))
          .Attr("output_shapes", {TensorShape({})}),
      1);
  ExpectNothingToDo();
}

TEST_F(FunctionGroupsTest, SymbolicGradientsStayAsTheyAre) {
  Define("f", {Square("s")});
  Add(NodeBuilder("gradient", "SymbolicGradient")
          .Input(std::vector<NodeBuilder::NodeOut>{Constant("x")})
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("f", FDH::FunctionRef("f").proto),
      1);
  ExpectNothingToDo();
}

TEST_F(FunctionGroupsTest, WithoutScopesThereIsNothingToDo) {
  Define("f", {Square("s"), Call("again", "f")});
  Define("outer", {Call("call", "f"), Square("scoped", 3)});
  AddCall("a", "outer");
  AddCall("unknown", "not_in_the_library", 1);
  ExpectNothingToDo();
}

TEST_F(FunctionGroupsTest, UnlessEnabledItDoesNothing) {
  Define("f", {Square("s")});
  AddCall("a", "f", 1);
  const std::string before = Everything();
  EXPECT_TRUE(AssignFunctionGroups(PassOptions(), /*enabled=*/false).ok());
  EXPECT_EQ(Everything(), before);
  EXPECT_TRUE(AssignFunctionGroups({}, /*enabled=*/true).ok());
}

TEST_F(FunctionGroupsTest, ASecondRunHasNothingToDo) {
  Define("inner", {Square("s")});
  Define("outer", {Call("call", "inner"), Call("own", "inner", 2)});
  Define("f", {Call("call", "outer", 3)});
  AddCall("a", "outer", 1);
  AddCall("b", "f");
  Run();
  ExpectNothingToDo();
}

TEST_F(FunctionGroupsTest, CopiesOfAnEarlierGraphAreUsedAgain) {
  Define("inner", {Square("s")});
  Define("outer", {Call("call", "inner")});
  AddCall("a", "outer", 1);
  Run();
  const int functions = library_.num_functions();
  graph_ = std::make_unique<Graph>(OpRegistry::Global());
  AddCall("a", "outer", 1);
  Run();
  EXPECT_EQ(Called("a"), "outer__stream_group_1");
  EXPECT_EQ(library_.num_functions(), functions);
  // The graph's own library lacked them.
  EXPECT_TRUE(graph_->flib_def().Contains("outer__stream_group_1"));
  EXPECT_TRUE(graph_->flib_def().Contains("inner__stream_group_1"));
}

TEST_F(FunctionGroupsTest, AFunctionThatHappensToHaveTheNameIsNotUsed) {
  Define("f", {Square("s")});
  Define("f__stream_group_1", {Square("mine")});
  AddCall("a", "f", 1);
  Run();
  EXPECT_EQ(Called("a"), "f__stream_group_1_1");
  EXPECT_EQ(GroupIn("f__stream_group_1_1", "s"), 1);
  EXPECT_EQ(GroupIn("f__stream_group_1", "mine"), std::nullopt);
}

TEST_F(FunctionGroupsTest, ALibraryBehindTheGraphsGetsTheCopiesAlone) {
  Define("f", {Square("s")});
  graph_->mutable_flib_def()->Clear();
  graph_->mutable_flib_def()->set_default_registry(&library_);
  AddCall("a", "f", 1);
  Run();
  EXPECT_TRUE(library_.Contains("f__stream_group_1"));
  EXPECT_EQ(graph_->flib_def().num_functions(), 0);
}

TEST_F(FunctionGroupsTest, WithoutALibraryTheGraphsIsUsed) {
  Define("f", {Square("s")});
  AddCall("a", "f", 1);
  GraphOptimizationPassOptions options = PassOptions();
  options.flib_def = nullptr;
  ASSERT_TRUE(AssignFunctionGroups(options, /*enabled=*/true).ok());
  EXPECT_EQ(Called("a"), "f__stream_group_1");
  EXPECT_TRUE(graph_->flib_def().Contains("f__stream_group_1"));
}

TEST_F(FunctionGroupsTest, ACopyDiffersInNameAndGroupsAlone) {
  FunctionDef f = FDH::Create(
      "f", {"x: float"}, {"y: float"}, {},
      {Square("s"), {{"same"}, "Identity", {"x"}, {{"T", DT_FLOAT}}, {"s"}}},
      {{"y", "same:output:0"}}, {{"done", "s"}});
  (*f.mutable_attr())["_noinline"].set_b(true);
  (*(*f.mutable_arg_attr())[0].mutable_attr())["_user_specified_name"].set_s(
      "x");
  f.mutable_signature()->set_is_stateful(true);
  Define(f);
  GradientDef gradient;
  gradient.set_function_name("f");
  gradient.set_gradient_func("f_gradient");
  ASSERT_TRUE(library_.AddGradientDef(gradient).ok());
  Node* call = Add(CallOf("a", "f"), 1);
  NameAttrList with_attr;
  with_attr.set_name("f");
  (*with_attr.mutable_attr())["kept"].set_i(7);
  call->AddAttr("f", with_attr);
  Run();

  FunctionDef expected = f;
  expected.mutable_signature()->set_name("f__stream_group_1");
  (*expected.mutable_attr())[kStreamCopyOfAttr].set_s("f");
  for (NodeDef& node : *expected.mutable_node_def()) {
    (*node.mutable_attr())[kStreamGroupAttr].set_i(1);
  }
  const FunctionDef* copy = library_.Find("f__stream_group_1");
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(FunctionDefsEqual(*copy, expected)) << copy->DebugString();
  EXPECT_EQ(copy->DebugString(), expected.DebugString());
  EXPECT_EQ(library_.FindGradient("f__stream_group_1"), "f_gradient");
  NameAttrList called;
  ASSERT_TRUE(GetNodeAttr(Find("a")->attrs(), "f", &called).ok());
  EXPECT_EQ(called.attr().at("kept").i(), 7);
}

TEST_F(FunctionGroupsTest, ACopysNodesKnowWhereTheyComeFrom) {
  auto trace = std::make_shared<FrozenStackTrace>(
      std::vector<StackFrame>{StackFrame("model.py", 12, "call")});
  ASSERT_TRUE(
      library_.AddFunctionDef(FunctionOf("f", {Square("s")}), {{"s", trace}})
          .ok());
  AddCall("a", "f", 1);
  Run();
  for (const FunctionLibraryDefinition* library :
       {&std::as_const(library_), &graph_->flib_def()}) {
    const StackTracesMap* traces = library->GetStackTraces("f__stream_group_1");
    ASSERT_NE(traces, nullptr);
    ASSERT_TRUE(traces->contains("s"));
    EXPECT_EQ(traces->at("s"), trace);
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
