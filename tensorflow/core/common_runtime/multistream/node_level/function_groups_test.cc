// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups_fixture.h"
#include "tensorflow/core/common_runtime/multistream/testing/drawing.h"
#include "tensorflow/core/common_runtime/multistream/testing/text_graph.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/stack_frame.h"

namespace tensorflow::multistream {
namespace {

// "f__stream_group_1" is "f/1", and "f__stream_groups" is "f/s".
std::string Short(std::string function) {
  absl::StrReplaceAll({{"__stream_groups", "/s"}, {"__stream_group_", "/"}},
                      &function);
  return function;
}

class CopiesTest : public FunctionGroupsTest {
 protected:
  // A function that returns its float argument and also has `nodes`.
  FunctionDef FunctionOf(const std::string& name,
                         std::vector<FDH::Node> nodes) {
    nodes.push_back({{"same"}, "Identity", {"x"}, {{"T", DT_FLOAT}}});
    return FDH::Create(name, {"x: float"}, {"y: float"}, {}, nodes,
                       {{"y", "same:output:0"}});
  }
  // "f: s call@1(g); g: ...": f has node s, and node `call` of group 1, which
  // calls g.
  void DefineAll(absl::string_view functions) {
    for (absl::string_view function : absl::StrSplit(functions, "; ")) {
      std::pair<std::string, std::string> parts =
          absl::StrSplit(function, ": ");
      std::vector<FDH::Node> nodes;
      ForEachToken(parts.second, [&](const DrawnToken& node, const auto&) {
        nodes.push_back(node.words.empty()
                            ? Square(node.name, GroupOf(node))
                            : Call(node.name, node.words[0], GroupOf(node)));
      });
      Define(FunctionOf(parts.first, std::move(nodes)));
    }
  }
  // The same for the calls of the graph.
  void AddCalls(absl::string_view nodes) {
    ForEachToken(nodes, [&](const DrawnToken& node, const auto&) {
      AddCall(node.name, node.words[0], GroupOf(node));
    });
  }
  // Nodes of a text (testing/text_graph.h), with these groups.
  void AddText(const std::string& text,
               const std::map<std::string, int>& groups) {
    TextGraph added;
    added.Add(text);
    for (const auto& [name, group] : groups) {
      added[name]->AddAttr(kStreamGroupAttr, group);
    }
    graph_->Copy(added.graph);
  }

  void Run() {
    const absl::Status status =
        AssignFunctionGroups(PassOptions(), /*enabled=*/true);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string Everything() {
    GraphDef def;
    graph_->ToGraphDef(&def);
    std::string text = def.DebugString();
    std::vector<std::string> names = library_.ListFunctionNames();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      absl::StrAppend(&text, library_.Find(name)->DebugString());
    }
    return text;
  }
  void ExpectNothingToDo() {
    const std::string before = Everything();
    Run();
    EXPECT_EQ(Everything(), before);
  }
  // "a(f/1); f/1: s@1 call@1(g/1)": the functions that nodes of the graph call,
  // and the copies' nodes with their groups.
  std::string Copies() {
    std::vector<std::string> lines = {Nodes(graph_->ToGraphDefDebug().node())};
    std::vector<std::string> names = library_.ListFunctionNames();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const FunctionDef& function = *library_.Find(name);
      if (function.attr().count(kStreamCopyOfAttr) == 0) continue;
      lines.push_back(
          absl::StrCat(Short(name), ": ", Nodes(function.node_def())));
    }
    return absl::StrJoin(lines, "; ");
  }
  std::string Called(const std::string& node, const std::string& attr = "f") {
    NameAttrList function;
    EXPECT_TRUE(GetNodeAttr(Find(node)->attrs(), attr, &function).ok());
    return Short(function.name());
  }

 private:
  static Group GroupOf(const DrawnToken& node) {
    return node.value.empty() ? Group() : std::stoi(node.value);
  }
  // Of nodes that are calls or squares.
  template <typename NodeDefs>
  static std::string Nodes(const NodeDefs& nodes) {
    std::vector<std::string> parts;
    for (const NodeDef& node : nodes) {
      const bool calls = node.attr().count("f") > 0;
      if (!calls && node.op() != "Square") continue;
      parts.push_back(node.name());
      if (node.attr().count(kStreamGroupAttr) > 0) {
        absl::StrAppend(&parts.back(), "@",
                        node.attr().at(kStreamGroupAttr).i());
      }
      if (calls) {
        absl::StrAppend(&parts.back(), "(",
                        Short(node.attr().at("f").func().name()), ")");
      }
    }
    return absl::StrJoin(parts, " ");
  }
};

struct CopiesCase {
  const char* name;
  const char* functions;
  const char* calls;
  const char* copies;
};

class CallsTest : public CopiesTest,
                  public ::testing::WithParamInterface<CopiesCase> {};
TEST_P(CallsTest, GoToCopies) {
  DefineAll(GetParam().functions);
  AddCalls(GetParam().calls);
  std::map<std::string, std::string> originals;
  for (const std::string& name : library_.ListFunctionNames()) {
    originals[name] = library_.Find(name)->DebugString();
  }
  Run();
  EXPECT_EQ(Copies(), GetParam().copies);
  for (const auto& [name, original] : originals) {
    EXPECT_EQ(library_.Find(name)->DebugString(), original);
  }
  // A second run has nothing to do.
  ExpectNothingToDo();
}

const CopiesCase kCalls[] = {
    {"EachScopeHasItsOwn", "f: s", "a@1(f) b@2(f) b2@2(f) c(f)",
     "a@1(f/1) b@2(f/2) b2@2(f/2) c(f); f/1: s@1; f/2: s@2"},
    {"TheLeadersGroupIsAScopeToo", "f: s", "a@0(f)", "a@0(f/0); f/0: s@0"},
    {"NestedCallsFollow", "inner: s; outer: call(inner)", "a@3(outer)",
     "a@3(outer/3); inner/3: s@3; outer/3: call@3(inner/3)"},
    {"AScopeInsideTheFunctionWins",
     "inner: s; outer: own@2 other call@2(inner) rest(inner)", "a@1(outer)",
     "a@1(outer/1); inner/1: s@1; inner/2: s@2"
     "; outer/1: own@2 other@1 call@2(inner/2) rest@1(inner/1)"},
    {"ScopesInsideFunctionsThatAreCalledOutsideAnyCount",
     "leaf: s; scoped: call@2(leaf) other; plain: s; outer: call(scoped) "
     "plain_call(plain)",
     "a(outer) b(plain)",
     "a(outer/s) b(plain); leaf/2: s@2; outer/s: call(scoped/s) "
     "plain_call(plain)"
     "; scoped/s: call@2(leaf/2) other"},
    {"AFunctionThatCallsItselfEnds", "f: s again(f)", "a@1(f) b(f)",
     "a@1(f/1) b(f); f/1: s@1 again@1(f/1)"},
    {"FunctionsThatCallEachOtherAcrossScopesEnd",
     "f: to_g(g); g: to_f(f) to_h@1(h); h: to_g@2(g) s", "a(f)",
     "a(f/s); f/2: to_g@2(g/2); f/s: to_g(g/s); g/2: to_f@2(f/2) to_h@1(h/1)"
     "; g/s: to_f(f/s) to_h@1(h/1); h/1: to_g@2(g/2) s@1"},
    {"WithoutScopesThereIsNothingToDo",
     "f: s again(f); outer: call(f) scoped@3",
     "a(outer) unknown@1(not_in_the_library)",
     "a(outer) unknown@1(not_in_the_library)"},
    {"AFunctionThatHappensToHaveTheNameIsNotUsed",
     "f: s; f__stream_group_1: mine", "a@1(f)", "a@1(f/1_1); f/1_1: s@1"},
};
INSTANTIATE_TEST_SUITE_P(Calls, CallsTest, ::testing::ValuesIn(kCalls),
                         [](const auto& info) { return info.param.name; });

TEST_F(CopiesTest, BranchesAndBodiesOfControlFlowFollow) {
  DefineAll("f: s; g: s");
  AddText(
      "x = Cast(1) DstT=float;"
      "If = If(x, x) Tout=[DT_FLOAT] then_branch=f else_branch=g;"
      "StatelessIf = StatelessIf(x, x) Tout=[DT_FLOAT] then_branch=f"
      "    else_branch=g;"
      "While = While(x) cond=f body=g;"
      "case = Case(0, x) Tout=[DT_FLOAT]"
      "    branches='[{name: \"f\"}, {name: \"g\"}]'",
      {{"If", 1}, {"StatelessIf", 1}, {"While", 1}, {"case", 2}});
  Run();
  for (const char* op : {"If", "StatelessIf"}) {
    EXPECT_EQ(Called(op, "then_branch"), "f/1");
    EXPECT_EQ(Called(op, "else_branch"), "g/1");
  }
  EXPECT_EQ(Called("While", "cond"), "f/1");
  EXPECT_EQ(Called("While", "body"), "g/1");
  std::vector<NameAttrList> branches;
  ASSERT_TRUE(GetNodeAttr(Find("case")->attrs(), "branches", &branches).ok());
  ASSERT_EQ(branches.size(), 2);
  EXPECT_EQ(branches[0].name(), "f__stream_group_2");
  EXPECT_EQ(branches[1].name(), "g__stream_group_2");
}

TEST_F(CopiesTest, AFunctionCalledByItsNameAsAnOpFollows) {
  DefineAll("f: s");
  Define(FunctionOf("outer", {{{"call"}, "f", {"x"}}}));
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
  EXPECT_EQ(library_.Find("outer__stream_group_2")->node_def(0).op(),
            "f__stream_group_2");
}

TEST_F(CopiesTest, WhatXlaCompilesStaysAsItIs) {
  DefineAll("f: s");
  FunctionDef compiled = FunctionOf("compiled", {Square("s")});
  (*compiled.mutable_attr())["_XlaMustCompile"].set_b(true);
  Define(compiled);
  DefineAll("outer: call(compiled)");
  Add(CallOf("a", "f").Attr("_XlaMustCompile", true), 1);
  AddCall("b", "compiled", 1);
  Add(CallOf("c", "f").Attr("_xla_compile_id", "cluster"), 1);
  ExpectNothingToDo();
  Add(CallOf("d", "f").Attr("_XlaMustCompile", false), 1);
  AddCall("e", "outer", 1);
  Run();
  EXPECT_EQ(Called("d"), "f/1");
  // The call is one kernel, on its scope's group.
  EXPECT_TRUE(absl::EndsWith(Copies(), "; outer/1: call@1(compiled)"))
      << Copies();
}

// Input pipelines run functions on their own threads.
TEST_F(CopiesTest, FunctionsOfInputPipelinesAndGradientsStayAsTheyAre) {
  DefineAll("f: s");
  AddText(
      "n = Cast(1) DstT=int64;"
      "range = RangeDataset(n, n, n) output_types=[DT_INT64]"
      "    output_shapes='[{}]';"
      "map = MapDataset(range) f=f output_types=[DT_FLOAT] "
      "output_shapes='[{}]';"
      "gradient = SymbolicGradient(Cast(1) DstT=float) Tout=[DT_FLOAT] f=f",
      {{"range", 1}, {"map", 1}, {"gradient", 1}});
  ExpectNothingToDo();
}

TEST_F(CopiesTest, UnlessEnabledItDoesNothing) {
  DefineAll("f: s");
  AddCall("a", "f", 1);
  const std::string before = Everything();
  EXPECT_TRUE(AssignFunctionGroups(PassOptions(), /*enabled=*/false).ok());
  EXPECT_EQ(Everything(), before);
  EXPECT_TRUE(AssignFunctionGroups({}, /*enabled=*/true).ok());
}

TEST_F(CopiesTest, CopiesOfAnEarlierGraphAreUsedAgain) {
  DefineAll("inner: s; outer: call(inner)");
  AddCall("a", "outer", 1);
  Run();
  const int functions = library_.num_functions();
  graph_ = std::make_unique<Graph>(OpRegistry::Global());
  AddCall("a", "outer", 1);
  Run();
  EXPECT_EQ(Called("a"), "outer/1");
  EXPECT_EQ(library_.num_functions(), functions);
  // The graph's own library lacked them.
  EXPECT_TRUE(graph_->flib_def().Contains("outer__stream_group_1"));
  EXPECT_TRUE(graph_->flib_def().Contains("inner__stream_group_1"));
}

TEST_F(CopiesTest, ALibraryBehindTheGraphsGetsTheCopiesAlone) {
  DefineAll("f: s");
  graph_->mutable_flib_def()->Clear();
  graph_->mutable_flib_def()->set_default_registry(&library_);
  AddCall("a", "f", 1);
  Run();
  EXPECT_TRUE(library_.Contains("f__stream_group_1"));
  EXPECT_EQ(graph_->flib_def().num_functions(), 0);
}

TEST_F(CopiesTest, WithoutALibraryTheGraphsIsUsed) {
  DefineAll("f: s");
  AddCall("a", "f", 1);
  GraphOptimizationPassOptions options = PassOptions();
  options.flib_def = nullptr;
  ASSERT_TRUE(AssignFunctionGroups(options, /*enabled=*/true).ok());
  EXPECT_EQ(Called("a"), "f/1");
  EXPECT_TRUE(graph_->flib_def().Contains("f__stream_group_1"));
}

TEST_F(CopiesTest, ACopyDiffersInNameAndGroupsAlone) {
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

TEST_F(CopiesTest, ACopysNodesKnowWhereTheyComeFrom) {
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
}  // namespace tensorflow::multistream
