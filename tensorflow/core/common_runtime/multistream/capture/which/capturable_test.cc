// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow::multistream {
namespace {

class CapturableTest : public ::testing::Test {
 protected:
  Capturable Found() { return ClassifyForCapture(part_.graph, nullptr); }
  std::string Obstacle() { return Found().obstacle; }

  PartGraph part_{kGpu, kHost};
};

TEST_F(CapturableTest, WhatIsInTheWayIsNamed) {
  const std::string to_gpu = absl::StrCat(" recv_device=", kGpu);
  const std::string from_gpu = absl::StrCat(" send_device=", kGpu);
  struct Case {
    std::string part;
    std::string obstacle;  // a part of it
  };
  for (const auto& [text, obstacle] : std::vector<Case>{
           {"x = early() tensor_type=bool; where = Where(x); y = send(where)",
            "Where 'where'"},
           {"x = host_receive(); y = send(Tanh(x))", "_HostRecv 'x'"},
           {"x = early()" + from_gpu + "; y = send(Tanh(x))", "_Recv 'x'"},
           {"y = send(early())" + to_gpu, "_Send 'y' copies between"},
           {"x = receive(); y = send(Tanh(x))",
            "_Recv 'x' receives what may wait"},
           {"x = early() tensor_type=string; y = send(Identity(x))",
            "has a string"},
           {"x = arg() T=int32; y = result(Neg(x))",
            "_Arg 'x' takes a value that"},
           {"v = handle() shared_name=" +
                std::string(ResourceHandle::ANONYMOUS_NAME) +
                "; y = result(read(v))",
            "VarHandleOp 'v'"},
           {"v = handle() dtype=int32; add = AssignAddVariableOp(v, 1)",
            "'add' takes a value on the host"},
           {"v = handle(); destroy = DestroyResourceOp(v)",
            "DestroyResourceOp 'destroy'"},
           {"l = TensorListFromTensor(early(), Const() dtype=int32 "
            "value='{dtype: "
            "DT_INT32 tensor_shape {}}'); y = send(l)",
            "_Send 'y' has a variant"},
           {"i = early() tensor_type=int64; y = send(ScatterNd(i, i, i))",
            "ScatterNd 'ScatterNd' of integers runs on the host"},
           {"v = handle() dtype=int64; i = early() tensor_type=int64;"
            "add = ResourceScatterAdd(v, i, i)",
            "'add' of integers runs on the host"},
           {"y = send(ResizeNearestNeighbor(early(), {2, 2}))",
            "ResizeNearestNeighbor' asks whether the GPU has completed"},
           {"y = send(AvgPoolGrad({1, 4, 4, 1}, early())"
            " ksize=[1,2,2,1] strides=[1,2,2,1] padding=SAME)",
            "AvgPoolGrad' asks whether the GPU has completed"},
           {"Tanh(early())", "the graph has no result"}}) {
    PartGraph part(kGpu, kHost);
    part.Add(text);
    const std::string found = ClassifyForCapture(part.graph, nullptr).obstacle;
    EXPECT_TRUE(absl::StrContains(found, obstacle)) << text << ": " << found;
  }
}

TEST_F(CapturableTest, DrawsHaveTheStateOfTheirGeneratorOnTheDevice) {
  part_.Add(
      "x = early(); a = TruncatedNormal({3}) dtype=float;"
      "b = RandomUniform({2, 3}, ^a) dtype=float; y = send(Add(b, x))");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.draws, std::vector<std::string>({"a", "b"}));
  const auto graph = WithStatelessDraws(part_.graph, found.draws, kGpu);
  TF_CHECK_OK(graph.status());
  std::set<std::string> names, ops;
  for (const Node* node : (*graph)->op_nodes()) {
    ops.insert(node->type_string());
    std::string name;
    if (TryGetNodeAttr(node->attrs(), "tensor_name", &name)) names.insert(name);
    if (node->type_string() != "Add") continue;
    const Node* drawn;
    TF_CHECK_OK(node->input_node(0, &drawn));
    EXPECT_EQ(drawn->type_string(), "StatelessRandomUniformV2");
    EXPECT_EQ(drawn->assigned_device_name(), kGpu);
    EXPECT_EQ(drawn->in_edges().size(), 5);  // one from the other draw
  }
  EXPECT_EQ(ops.count("RandomUniform") + ops.count("TruncatedNormal"), 0);
  std::vector<std::string> keys = DrawStateKeys(2);
  for (const std::string& key : DrawShapeKeys(2)) keys.push_back(key);
  for (const std::string& key : keys) {
    Rendezvous::ParsedKey parsed;
    TF_CHECK_OK(Rendezvous::ParseKey(key, &parsed));
    EXPECT_EQ(names.count(std::string(parsed.edge_name)), 1) << key;
  }
}

TEST_F(CapturableTest, KeysAreThoseOfWhatIsReceivedAndSent) {
  part_.Add("x = early(); y = send(Tanh(x))");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.receives.size(), 1);
  ASSERT_EQ(found.sends.size(), 1);
  EXPECT_TRUE(absl::StrContains(found.receives[0], ";x;0:0"));
  EXPECT_TRUE(absl::StrContains(found.sends[0], ";y;0:0"));
}

// Results leave the step only after all ops have run.
TEST_F(CapturableTest, WhatMayWaitForASentValueDoesNotWaitForAResult) {
  part_.Add("r = result(Tanh(receive()))");
  EXPECT_EQ(Obstacle(), "");
}

TEST_F(CapturableTest, ArgumentsAndResultsOfACall) {
  part_.Add(
      "x = arg() index=3; y = result(Tanh(x)) index=1;"
      "shape = result(Shape(x)) index=0");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.arguments.size(), 1);
  EXPECT_EQ(found.arguments[0].index, 3);
  EXPECT_FALSE(found.arguments[0].is_variable);
  ASSERT_EQ(found.results.size(), 2);
  for (const Capturable::Result& result : found.results) {
    EXPECT_EQ(result.on_host, result.index == 0);
  }
}

TEST_F(CapturableTest, VariablesByArgumentAndByName) {
  part_.Add(
      "w = arg() T=resource index=2; ids = arg() T=int64;"
      "rows = result(gather(Identity(w), ids)); table = handle();"
      "all = result(read(table)) index=1");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.variables.size(), 2);
  for (const Capturable::Variable& variable : found.variables) {
    const bool by_name = variable.argument < 0;
    EXPECT_EQ(variable.gathered, !by_name);
    EXPECT_EQ(variable.name, by_name ? "table" : "");
    if (by_name) continue;
    EXPECT_TRUE(found.arguments[variable.argument].is_variable);
    EXPECT_EQ(found.arguments[variable.argument].index, 2);
  }
}

TEST_F(CapturableTest, WhatChangesAVariableIsCaptured) {
  part_.Add(
      "w = arg() T=resource; other = handle();"
      "AssignAddVariableOp(w, read(other))");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");  // although the graph has no result
  EXPECT_TRUE(found.changes_variables);
  ASSERT_EQ(found.variables.size(), 2);
  for (const Capturable::Variable& variable : found.variables) {
    EXPECT_EQ(variable.changed, variable.name.empty());
  }
}

TEST_F(CapturableTest, ALoopIsCaptured) {
  part_.Add(
      "x = early(); enter = enter(x); merge = Merge(enter, enter);"
      "never = Const(^merge) dtype=bool"
      "    value='{dtype: DT_BOOL tensor_shape {} bool_val: false}';"
      "choice = Switch(merge, LoopCond(never));"
      "next = NextIteration(choice:1); y = send(Exit(choice))");
  part_.Close("next", "merge");
  EXPECT_TRUE(absl::StrContains(Obstacle(), "loops are not known"));
  FixupSourceAndSinkEdges(&part_.graph);
  EXPECT_EQ(Obstacle(), "");
  part_.Add("z = send(next)");  // in each iteration
  FixupSourceAndSinkEdges(&part_.graph);
  EXPECT_EQ(Obstacle(), "_Send 'z' is in a loop");
}

// Whether XLA compiles for one value of an axis or a size, and what clusters
// may leave to TensorFlow: capture_xla_test.py.
TEST_F(CapturableTest, WhatXlaCompilesIsCapturedIfItsOpsAreKnown) {
  for (const std::string op : {"Tanh", "RandomStandardNormal"}) {
    PartGraph part(kGpu, kHost);
    const FunctionDef function = FunctionDefHelper::Create(
        "f", {"x: float"}, {"y: float"}, {},
        {{{"inside"}, op, {"x"}, {{"T", DT_FLOAT}}}}, {{"y", "inside:y:0"}});
    TF_CHECK_OK(part.graph.AddFunctionDef(function, StackTracesMap()));
    part.Add(
        "call = StatefulPartitionedCall(early()) f=f Tout=[DT_FLOAT]"
        "    _XlaMustCompile=true; y = send(call)");
    const Capturable found = ClassifyForCapture(part.graph, nullptr);
    EXPECT_TRUE(found.is_compiled);
    if (op == "Tanh") {
      EXPECT_EQ(found.obstacle, "");
    } else {
      EXPECT_TRUE(absl::StrContains(
          found.obstacle, "'call' compiles RandomStandardNormal 'inside'"))
          << found.obstacle;
    }
  }
}

TEST_F(CapturableTest, WhatXlaChangesIsAChangedVariable) {
  using Helper = FunctionDefHelper;
  // `outer` changes its first variable in a function that it calls, and reads
  // the second.
  const Helper::AttrValueWrapper type(DT_FLOAT);
  const FunctionDef inner = Helper::Create(
      "inner", {"v: resource", "x: float"}, {}, {},
      {{{"add"}, "AssignAddVariableOp", {"v", "x"}, {{"dtype", type}}}}, {},
      {{"added", "add"}});
  const FunctionDef outer = Helper::Create(
      "outer", {"v: resource", "w: resource", "x: float"}, {"y: float"}, {},
      {{{"passed"}, "Identity", {"v"}, {{"T", DT_RESOURCE}}},
       {{"read"}, "ReadVariableOp", {"w"}, {{"dtype", type}}},
       {{"call"},
        "StatefulPartitionedCall",
        {"passed:output", "read:value"},
        {{"Tin", DataTypeVector{DT_RESOURCE, DT_FLOAT}},
         {"Tout", DataTypeVector{}},
         {"f", Helper::FunctionRef("inner")}}}},
      {{"y", "read:value"}});
  TF_CHECK_OK(part_.graph.AddFunctionDef(inner, StackTracesMap()));
  TF_CHECK_OK(part_.graph.AddFunctionDef(outer, StackTracesMap()));
  part_.Add(
      "v = handle() shared_name='v'; w = handle() shared_name='w';"
      "call = StatefulPartitionedCall(v, w, early()) f=outer Tout=[DT_FLOAT]"
      "    _XlaMustCompile=true; y = send(call)");
  const Capturable found = Found();
  EXPECT_EQ(found.obstacle, "");
  EXPECT_TRUE(found.changes_variables);
  ASSERT_EQ(found.variables.size(), 2);
  for (const Capturable::Variable& variable : found.variables) {
    EXPECT_EQ(variable.changed, variable.name == "v") << variable.name;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
