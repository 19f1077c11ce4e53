// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kHost[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

class CapturableTest : public ::testing::Test {
 protected:
  Node* Receive(const std::string& name, DataType type,
                const char* op = "_Recv", const char* from = kHost) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(name, op)
                    .Attr("tensor_type", type)
                    .Attr("tensor_name", "edge_5_" + name)
                    .Attr("_multi_stream_early", true)
                    .Attr("send_device", from)
                    .Attr("send_device_incarnation", 7)
                    .Attr("recv_device", kGpu)
                    .Finalize(&graph_, &node));
    return node;
  }
  void Send(const std::string& name, Node* value, const char* to = kHost) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(name, "_Send")
                    .Input(value)
                    .Attr("tensor_name", name)
                    .Attr("send_device", kGpu)
                    .Attr("send_device_incarnation", 9)
                    .Attr("recv_device", to)
                    .Finalize(&graph_, &node));
  }
  Node* Of(const std::string& name, const char* op, Node* input) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(name, op).Input(input).Finalize(&graph_, &node));
    return node;
  }
  Node* Argument(const std::string& name, DataType type, int index) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(name, "_Arg")
                    .Attr("T", type)
                    .Attr("index", index)
                    .Finalize(&graph_, &node));
    return node;
  }
  void Result(const std::string& name, Node* value, int index) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(name, "_Retval")
                    .Input(value)
                    .Attr("index", index)
                    .Finalize(&graph_, &node));
  }
  Node* Handle(const std::string& name) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("handle", "VarHandleOp")
                    .Attr("dtype", DT_FLOAT)
                    .Attr("shape", TensorShape({2}))
                    .Attr("shared_name", name)
                    .Finalize(&graph_, &node));
    return node;
  }
  Node* Read(Node* handle) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("read", "ReadVariableOp")
                    .Input(handle)
                    .Attr("dtype", DT_FLOAT)
                    .Finalize(&graph_, &node));
    return node;
  }
  Node* Gather(Node* handle, Node* ids) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("gather", "ResourceGather")
                    .Input(handle)
                    .Input(ids)
                    .Attr("dtype", DT_FLOAT)
                    .Finalize(&graph_, &node));
    return node;
  }
  std::string Obstacle() {
    return ClassifyForCapture(graph_, nullptr).obstacle;
  }

  Graph graph_{OpRegistry::Global()};
};

TEST_F(CapturableTest, KeysAreThoseOfWhatIsReceivedAndSent) {
  Send("y", Of("tanh", "Tanh", Receive("x", DT_FLOAT)));
  const Capturable found = ClassifyForCapture(graph_, nullptr);
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.receives.size(), 1);
  ASSERT_EQ(found.sends.size(), 1);
  EXPECT_TRUE(absl::StrContains(found.receives[0], ";edge_5_x;0:0"));
  EXPECT_TRUE(absl::StrContains(found.sends[0], ";y;0:0"));
}

TEST_F(CapturableTest, AnOpThatIsNotKnownIsNamed) {
  Send("y", Of("where", "Where", Receive("x", DT_BOOL)));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "Where 'where'")) << Obstacle();
}

TEST_F(CapturableTest, AValueThatOpsReadOnTheHostIsInTheWay) {
  Send("y", Of("tanh", "Tanh", Receive("x", DT_FLOAT, "_HostRecv")));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "_HostRecv 'x'")) << Obstacle();
}

TEST_F(CapturableTest, AnotherDeviceIsInTheWay) {
  Send("y", Of("tanh", "Tanh", Receive("x", DT_FLOAT, "_Recv", kGpu)));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "_Recv 'x'")) << Obstacle();
}

TEST_F(CapturableTest, WhatMayWaitForAResultIsInTheWay) {
  Node* x = Receive("x", DT_FLOAT);
  Node* y = Of("tanh", "Tanh", x);
  x->ClearAttr("_multi_stream_early");
  Result("result", y, 0);
  // Results leave the step only after all ops have run.
  EXPECT_EQ(Obstacle(), "");
  Send("y", y);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "_Recv 'x' receives what may wait"))
      << Obstacle();
}

// Two nodes, in which XLA compiles a function with this op, and runs it.
class CompiledTest : public CapturableTest {
 protected:
  void Compile(const char* op, bool must_compile) {
    const FunctionDef cluster = FunctionDefHelper::Create(
        "cluster", {"x: float"}, {"y: float"}, {},
        {{{"inside"}, op, {"x"}, {{"T", DT_FLOAT}}}}, {{"y", "inside:y:0"}});
    TF_CHECK_OK(graph_.AddFunctionDef(cluster, StackTracesMap()));
    NameAttrList function;
    function.set_name("cluster");
    const std::vector<NodeBuilder::NodeOut> none;
    const std::vector<NodeBuilder::NodeOut> taken = {Receive("x", DT_FLOAT)};
    Node *compiled, *run;
    TF_CHECK_OK(NodeBuilder("compile", "_XlaCompile")
                    .Input(none)
                    .Input(taken)
                    .Input(none)
                    .Attr("must_compile", must_compile)
                    .Attr("function", function)
                    .Finalize(&graph_, &compiled));
    TF_CHECK_OK(NodeBuilder("run", "_XlaRun")
                    .Input(taken)
                    .Input(compiled, 0)
                    .Attr("Tresults", DataTypeVector{DT_FLOAT})
                    .Finalize(&graph_, &run));
    Send("y", run);
  }
};

TEST_F(CompiledTest, WhatXlaCompilesIsCaptured) {
  Compile("Tanh", /*must_compile=*/true);
  EXPECT_EQ(Obstacle(), "");
  EXPECT_TRUE(ClassifyForCapture(graph_, nullptr).is_compiled);
}

TEST_F(CompiledTest, AnOpInsideThatIsNotKnownIsNamed) {
  Compile("RandomStandardNormal", /*must_compile=*/true);
  EXPECT_TRUE(absl::StrContains(
      Obstacle(), "'compile' compiles RandomStandardNormal 'inside'"))
      << Obstacle();
}

TEST_F(CompiledTest, WhatXlaMayLeaveToTensorFlowIsInTheWay) {
  Compile("Tanh", /*must_compile=*/false);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "lazy_compilation=false"))
      << Obstacle();
}

// Sums whose axes are must-be-constant for XLA.
class AxesTest : public CapturableTest {
 protected:
  void CallWith(const char* type, Node* axes) {
    const std::string axes_type = type;
    std::vector<FunctionDefHelper::Node> nodes;
    std::string axes_of_sum = "axes";
    if (axes_type == "resource") {
      nodes.push_back(
          {{"read"}, "ReadVariableOp", {"axes"}, {{"dtype", DT_INT64}}});
      axes_of_sum = "read:value:0";
    }
    nodes.push_back({{"sum"},
                     "Sum",
                     {"x", axes_of_sum},
                     {{"T", DT_FLOAT}, {"Tidx", DT_INT64}}});
    const FunctionDef inner = FunctionDefHelper::Create(
        "inner", {"x: float", "axes: " + axes_type}, {"y: float"}, {}, nodes,
        {{"y", "sum:output:0"}});
    NameAttrList called;
    called.set_name("inner");
    const DataTypeVector types = {DT_FLOAT, axes->output_type(0)};
    // A function that calls `inner`.
    const FunctionDef cluster = FunctionDefHelper::Create(
        "cluster", {"x: float", "axes: " + axes_type}, {"y: float"}, {},
        {{{"call"},
          "StatefulPartitionedCall",
          {"x", "axes"},
          {{"Tin", types}, {"Tout", DataTypeVector{DT_FLOAT}}, {"f", called}}}},
        {{"y", "call:output:0"}});
    TF_CHECK_OK(graph_.AddFunctionDef(inner, StackTracesMap()));
    TF_CHECK_OK(graph_.AddFunctionDef(cluster, StackTracesMap()));
    NameAttrList function;
    function.set_name("cluster");
    const std::vector<NodeBuilder::NodeOut> taken = {Argument("x", DT_FLOAT, 0),
                                                     axes};
    Node* call;
    TF_CHECK_OK(NodeBuilder("call", "StatefulPartitionedCall")
                    .Input(taken)
                    .Attr("Tout", DataTypeVector{DT_FLOAT})
                    .Attr("f", function)
                    .Attr("_XlaMustCompile", true)
                    .Finalize(&graph_, &call));
    Result("y", call, 0);
  }
  void ExpectInTheWay() {
    EXPECT_TRUE(absl::StrContains(
        Obstacle(), "'call' compiles cluster for one value of 'axes'"))
        << Obstacle();
  }
};

TEST_F(AxesTest, OfAVariableAreInTheWay) {
  CallWith("resource", Argument("handle", DT_RESOURCE, 1));
  ExpectInTheWay();
}

TEST_F(AxesTest, OfTheDeviceAreInTheWay) {
  CallWith("int64", Of("neg", "Neg", Argument("axes", DT_INT64, 1)));
  ExpectInTheWay();
}

TEST_F(AxesTest, ThatShapesDecideAreNot) {
  Node* rank;
  TF_CHECK_OK(NodeBuilder("shape", "Shape")
                  .Input(Argument("other", DT_FLOAT, 1))
                  .Attr("out_type", DT_INT64)
                  .Finalize(&graph_, &rank));
  CallWith("int64", Of("neg", "Neg", rank));
  EXPECT_EQ(Obstacle(), "");
}

TEST_F(CapturableTest, StringsAreInTheWay) {
  Send("y", Of("same", "Identity", Receive("x", DT_STRING)));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "has a string")) << Obstacle();
}

TEST_F(CapturableTest, ArgumentsAndResultsOfACall) {
  Node* x = Argument("x", DT_FLOAT, 3);
  Result("y", Of("tanh", "Tanh", x), 1);
  Result("shape", Of("shape_op", "Shape", x), 0);
  const Capturable found = ClassifyForCapture(graph_, nullptr);
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.arguments.size(), 1);
  EXPECT_EQ(found.arguments[0].index, 3);
  EXPECT_FALSE(found.arguments[0].is_variable);
  ASSERT_EQ(found.results.size(), 2);
  for (const Capturable::Result& result : found.results) {
    EXPECT_EQ(result.on_host, result.index == 0);
  }
}

TEST_F(CapturableTest, AnArgumentOnTheHostIsInTheWay) {
  Result("y", Of("neg", "Neg", Argument("x", DT_INT32, 0)), 0);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "_Arg 'x' takes a value that"))
      << Obstacle();
}

TEST_F(CapturableTest, VariablesByArgumentAndByName) {
  Node* argument = Argument("w", DT_RESOURCE, 2);
  Node* same;
  TF_CHECK_OK(
      NodeBuilder("same", "Identity").Input(argument).Finalize(&graph_, &same));
  Node* ids = Argument("ids", DT_INT64, 0);
  Result("rows", Gather(same, ids), 0);
  Result("all", Read(Handle("table")), 1);
  const Capturable found = ClassifyForCapture(graph_, nullptr);
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

TEST_F(CapturableTest, AVariableThatTheGraphMakesIsInTheWay) {
  Result("y", Read(Handle(ResourceHandle::ANONYMOUS_NAME)), 0);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "VarHandleOp")) << Obstacle();
}

TEST_F(CapturableTest, WhatChangesAVariableIsCaptured) {
  Node* node;
  TF_CHECK_OK(NodeBuilder("add", "AssignAddVariableOp")
                  .Input(Argument("w", DT_RESOURCE, 0))
                  .Input(Read(Handle("other")))
                  .Finalize(&graph_, &node));
  const Capturable found = ClassifyForCapture(graph_, nullptr);
  EXPECT_EQ(found.obstacle, "");  // although the graph has no result
  EXPECT_TRUE(found.changes_variables);
  ASSERT_EQ(found.variables.size(), 2);
  for (const Capturable::Variable& variable : found.variables) {
    EXPECT_EQ(variable.changed, variable.name.empty());
  }
}

TEST_F(CapturableTest, AChangeOnTheHostIsInTheWay) {
  Node *handle, *node, *one;
  TF_CHECK_OK(NodeBuilder("handle", "VarHandleOp")
                  .Attr("dtype", DT_INT32)
                  .Attr("shape", TensorShape({}))
                  .Attr("shared_name", "count")
                  .Finalize(&graph_, &handle));
  TF_CHECK_OK(NodeBuilder("one", "Const")
                  .Attr("dtype", DT_INT32)
                  .Attr("value", Tensor(1))
                  .Finalize(&graph_, &one));
  TF_CHECK_OK(NodeBuilder("add", "AssignAddVariableOp")
                  .Input(handle)
                  .Input(one)
                  .Finalize(&graph_, &node));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "'add' takes a value on the host"))
      << Obstacle();
}

TEST_F(CapturableTest, AChangeThatIsNotKnownIsInTheWay) {
  Node *push, *handle;
  TF_CHECK_OK(NodeBuilder("handle", "VarHandleOp")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", TensorShape({}))
                  .Attr("shared_name", "w")
                  .Finalize(&graph_, &handle));
  TF_CHECK_OK(NodeBuilder("destroy", "DestroyResourceOp")
                  .Input(handle)
                  .Finalize(&graph_, &push));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "DestroyResourceOp 'destroy'"))
      << Obstacle();
}

TEST_F(CapturableTest, ALoopIsCaptured) {
  Node *enter, *merge, *condition, *loop, *choice, *next, *exit;
  TF_CHECK_OK(NodeBuilder("enter", "Enter")
                  .Input(Receive("x", DT_FLOAT))
                  .Attr("frame_name", "loop")
                  .Finalize(&graph_, &enter));
  TF_CHECK_OK(NodeBuilder("merge", "Merge")
                  .Input({enter, enter})
                  .Finalize(&graph_, &merge));
  TF_CHECK_OK(NodeBuilder("condition", "Const")
                  .Attr("dtype", DT_BOOL)
                  .Attr("value", Tensor(false))
                  .ControlInput(merge)
                  .Finalize(&graph_, &condition));
  loop = Of("loop", "LoopCond", condition);
  TF_CHECK_OK(NodeBuilder("choice", "Switch")
                  .Input(merge)
                  .Input(loop)
                  .Finalize(&graph_, &choice));
  TF_CHECK_OK(NodeBuilder("next", "NextIteration")
                  .Input(choice, 1)
                  .Finalize(&graph_, &next));
  TF_CHECK_OK(graph_.UpdateEdge(next, 0, merge, 1));
  TF_CHECK_OK(
      NodeBuilder("exit", "Exit").Input(choice, 0).Finalize(&graph_, &exit));
  Send("y", exit);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "loops are not known"));
  FixupSourceAndSinkEdges(&graph_);
  EXPECT_EQ(Obstacle(), "");
  // A send in each iteration.
  Send("z", next);
  FixupSourceAndSinkEdges(&graph_);
  EXPECT_EQ(Obstacle(), "_Send 'z' is in a loop");
}

TEST_F(CapturableTest, ACopyToTheHostInTheMiddleIsInTheWay) {
  Send("y", Receive("x", DT_FLOAT), kGpu);
  EXPECT_TRUE(absl::StrContains(Obstacle(), "_Send 'y' copies between"))
      << Obstacle();
}

TEST_F(CapturableTest, AGraphWithoutResultsIsNothingToCapture) {
  Of("tanh", "Tanh", Receive("x", DT_FLOAT));
  EXPECT_EQ(Obstacle(), "the graph has no result");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
