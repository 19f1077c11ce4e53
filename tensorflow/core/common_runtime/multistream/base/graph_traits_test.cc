// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/versions.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

using FDH = FunctionDefHelper;
using Names = absl::flat_hash_set<std::string>;

// A function that returns its float after `nodes` have run on it and on a
// resource. Every node is {name, op, inputs out of "v" and "x"}.
FunctionDef FunctionOf(const std::string& name, std::vector<FDH::Node> nodes) {
  nodes.push_back({{"y"}, "Identity", {"x"}, {{"T", DT_FLOAT}}});
  return FDH::Create(name, {"v: resource", "x: float"}, {"y: float"}, {}, nodes,
                     {{"y", "y:output:0"}});
}

// A node of a function that calls `function`.
FDH::Node CallOf(const std::string& function) {
  return {{"inner"},
          "StatefulPartitionedCall",
          {"v", "x"},
          {{"Tin", DataTypeSlice({DT_RESOURCE, DT_FLOAT})},
           {"Tout", DataTypeSlice({DT_FLOAT})},
           {"f", FDH::FunctionRef(function)}}};
}

std::unique_ptr<OpKernel> KernelOf(const NodeDef& node) {
  DeviceBase device(Env::Default());
  absl::Status status;
  std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, &device, cpu_allocator(), node,
                     TF_GRAPH_DEF_VERSION, &status);
  EXPECT_TRUE(status.ok()) << status;
  return kernel;
}

class GraphTraitsTest : public ::testing::Test {
 protected:
  GraphTraitsTest() : library_(OpRegistry::Global(), FunctionDefLibrary()) {
    const FDH::Node change = {
        {"change"}, "AssignVariableOp", {"v", "x"}, {{"dtype", DT_FLOAT}}};
    const FunctionDef functions[] = {
        FunctionOf("keeps", {}),
        FunctionOf("reads",
                   {{{"r"}, "ReadVariableOp", {"v"}, {{"dtype", DT_FLOAT}}}}),
        FunctionOf("assigns", {change}),
        FunctionOf("calls", {CallOf("assigns")}),
        FunctionOf("draws", {{{"n"},
                              "RandomStandardNormal",
                              {"x"},
                              {{"T", DT_INT32}, {"dtype", DT_FLOAT}}}}),
        FunctionOf("calls_draws", {CallOf("draws")}),
        FunctionOf("recurs", {CallOf("recurs")}),
        // The condition and the body of a loop.
        FDH::Create(
            "positive", {"v: resource", "x: float"}, {"y: bool"}, {},
            {{{"y"}, "Cast", {"x"}, {{"SrcT", DT_FLOAT}, {"DstT", DT_BOOL}}}},
            {{"y", "y:y:0"}}),
        FDH::Create("assigns_and_returns", {"v: resource", "x: float"},
                    {"w: resource", "y: float"}, {},
                    {change,
                     {{"w"}, "Identity", {"v"}, {{"T", DT_RESOURCE}}},
                     {{"y"}, "Identity", {"x"}, {{"T", DT_FLOAT}}}},
                    {{"w", "w:output:0"}, {"y", "y:output:0"}})};
    for (const FunctionDef& function : functions) {
      const absl::Status status = library_.AddFunctionDef(function);
      EXPECT_TRUE(status.ok()) << status;
    }
    Restart();
  }
  void Restart() { graph_ = std::make_unique<Graph>(&library_); }

  Node* Add(const NodeBuilder& builder) {
    Node* node = nullptr;
    const absl::Status status =
        NodeBuilder(builder).Finalize(graph_.get(), &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  Node* Constant(const std::string& name) {
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("value", Tensor(1.0f)));
  }
  Node* Index(const std::string& name) {
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", DT_INT32)
                   .Attr("value", Tensor(0)));
  }
  Node* Handle(const std::string& name) {
    return Add(NodeBuilder(name, "VarHandleOp")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({4, 2})));
  }
  Node* Reference(const std::string& name) {
    return Add(NodeBuilder(name, "VariableV2")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("shape", TensorShape({2})));
  }
  Node* Unary(const std::string& name, const std::string& op, Node* input) {
    return Add(NodeBuilder(name, op).Input(input));
  }
  // The arguments of the functions above.
  std::vector<NodeBuilder::NodeOut> Arguments() {
    return {Handle("call_v"), Constant("call_x")};
  }
  Node* Call(const std::string& function, const std::string& op) {
    return Add(NodeBuilder("call", op)
                   .Input(Arguments())
                   .Attr("Tout", DataTypeVector({DT_FLOAT}))
                   .Attr("f", FDH::FunctionRef(function).proto));
  }

  GraphTraits Classify() { return ClassifyGraph(*graph_, &library_); }

  // Each of these begins a new graph.
  void ExpectAnyGroup(const Names& readers = {}) {
    const GraphTraits traits = Classify();
    EXPECT_EQ(traits.leader_only, "");
    EXPECT_EQ(traits.readers, readers);
    Restart();
  }
  void ExpectLeaderOnly(std::initializer_list<const char*> parts) {
    const std::string reason = Classify().leader_only;
    EXPECT_FALSE(reason.empty());
    for (const char* part : parts) {
      EXPECT_TRUE(absl::StrContains(reason, part))
          << "'" << part << "' is not in '" << reason << "'";
    }
    Restart();
  }

  FunctionLibraryDefinition library_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(GraphTraitsTest, AFrozenGraphRunsOnAnyGroup) {
  Node* c = Constant("c");
  Add(NodeBuilder("sum", "AddV2").Input(c).Input(Unary("relu", "Relu", c)));
  EXPECT_FALSE(Classify().takes_tensors);
  EXPECT_FALSE(Classify().has_return_values);
  ExpectAnyGroup();

  Node* shape = Add(NodeBuilder("shape", "Const")
                        .Attr("dtype", DT_INT32)
                        .Attr("value", Tensor(DT_INT32, TensorShape({1}))));
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    Add(NodeBuilder(op, op).Input(shape).Attr("dtype", DT_FLOAT));
  }
  Node* array = Add(NodeBuilder("array", "TensorArrayV3")
                        .Input(Index("size"))
                        .Attr("dtype", DT_FLOAT));
  Add(NodeBuilder("write", "TensorArrayWriteV3")
          .Input(array, 0)
          .Input(Index("i"))
          .Input(Constant("value"))
          .Input(array, 1));
  ExpectAnyGroup();
}

TEST_F(GraphTraitsTest, ReadersOfVariablesRunOnAnyGroupAndAreNamed) {
  Node* v = Handle("v");
  Node* read = Add(
      NodeBuilder("read", "ReadVariableOp").Input(v).Attr("dtype", DT_FLOAT));
  Unary("relu", "Relu", read);
  Add(NodeBuilder("gather", "ResourceGather")
          .Input(Unary("same_v", "Identity", v))
          .Input(Index("i"))
          .Attr("dtype", DT_FLOAT));
  ExpectAnyGroup({"read", "gather"});
  // A reference variable makes every op a reader.
  Unary("relu", "Relu", Unary("read", "Identity", Reference("v")));
  Constant("c");
  ExpectAnyGroup({"v", "read", "relu", "c"});
  // In a function, the node reads the variable, not the call.
  Call("reads", "PartitionedCall");
  ExpectAnyGroup();
  Call("reads", "StatefulPartitionedCall");
  ExpectAnyGroup();
  // Unless XLA compiles the function, whose ops then launch nothing themselves.
  Call("reads", "StatefulPartitionedCall")->AddAttr("_XlaMustCompile", true);
  ExpectAnyGroup({"call"});
}

TEST_F(GraphTraitsTest, RandomNumbersOfCompiledCodeAreTheLeaders) {
  for (const char* function : {"draws", "calls_draws"}) {
    Call(function, "StatefulPartitionedCall");
    ExpectAnyGroup();
    Node* plain = Call(function, "StatefulPartitionedCall");
    Node* call = graph_->CopyNode(plain);
    call->set_name("compiled");
    call->AddAttr("_XlaMustCompile", true);
    ExpectLeaderOnly({"RandomStandardNormal", "code of XLA's"});
  }
}

TEST_F(GraphTraitsTest, ACompiledCallChangesWhatItsFunctionChanges) {
  for (const auto& [function, changes] :
       {std::pair{"reads", false}, {"assigns", true}, {"calls", true}}) {
    Node* call = Call(function, "StatefulPartitionedCall");
    EXPECT_EQ(LeaderReason(*call, &library_), "");
    const std::unique_ptr<OpKernel> plain = KernelOf(call->def());
    EXPECT_FALSE(MayChangeState(*plain, &library_)) << function;
    call->AddAttr("_XlaMustCompile", true);
    EXPECT_EQ(LeaderReason(*call, &library_).empty(), !changes) << function;
    const std::unique_ptr<OpKernel> compiled = KernelOf(call->def());
    EXPECT_EQ(MayChangeState(*compiled, &library_), changes) << function;
    EXPECT_TRUE(MayChangeState(*compiled, /*library=*/nullptr));
    Restart();
  }
}

// Calls and receives wait for other nodes, and those may read the variable.
TEST_F(GraphTraitsTest, NeitherCallsNorWhatReceivesReadAReference) {
  Call("keeps", "PartitionedCall");
  Add(NodeBuilder("receive", "_Recv")
          .Attr("tensor_type", DT_FLOAT)
          .Attr("tensor_name", "t")
          .Attr("send_device", "/cpu:0")
          .Attr("send_device_incarnation", int64_t{1})
          .Attr("recv_device", "/gpu:0"));
  EXPECT_EQ(Classify().readers, Names());
  EXPECT_FALSE(Classify().has_references);
  Reference("v");
  EXPECT_TRUE(Classify().has_references);
  ExpectAnyGroup({"v", "call_v", "call_x"});
}

TEST_F(GraphTraitsTest, WhatChangesStateRunsOnTheLeaderAndIsNamed) {
  Add(NodeBuilder("the_change", "AssignVariableOp")
          .Input(Handle("v"))
          .Input(Constant("c")));
  ExpectLeaderOnly({"the_change", "AssignVariableOp", "may change a variable"});
  Add(NodeBuilder("descend", "ResourceApplyGradientDescent")
          .Input(Handle("v"))
          .Input(Constant("rate"))
          .Input(Constant("gradient")));
  ExpectLeaderOnly({"descend", "ResourceApplyGradientDescent"});
  Add(NodeBuilder("the_change", "Assign")
          .Input(Reference("v"))
          .Input(Constant("c")));
  ExpectLeaderOnly({"the_change", "Assign"});
  Add(NodeBuilder("the_queue", "FIFOQueueV2")
          .Attr("component_types", DataTypeVector({DT_FLOAT})));
  ExpectLeaderOnly({"the_queue", "FIFOQueueV2", "stateful"});
}

TEST_F(GraphTraitsTest, AnAssignmentIsFoundInWhateverRunsItsFunction) {
  Call("assigns", "PartitionedCall");
  ExpectLeaderOnly({"change", "AssignVariableOp", "function assigns"});
  Call("calls", "StatefulPartitionedCall");
  ExpectLeaderOnly({"change", "function assigns", "function calls"});
  Add(NodeBuilder("the_op", "assigns", &library_)
          .Input(Handle("v"))
          .Input(Constant("x")));
  ExpectLeaderOnly({"change", "function assigns"});
  Add(NodeBuilder("if", "If")
          .Input(Constant("condition"))
          .Input(Arguments())
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("then_branch", FDH::FunctionRef("keeps").proto)
          .Attr("else_branch", FDH::FunctionRef("assigns").proto));
  ExpectLeaderOnly({"change", "function assigns"});
  AttrValue branches;
  for (const char* name : {"keeps", "assigns"}) {
    branches.mutable_list()->add_func()->set_name(name);
  }
  Add(NodeBuilder("case", "Case")
          .Input(Index("i"))
          .Input(Arguments())
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("branches", branches));
  ExpectLeaderOnly({"change", "function assigns"});
  Add(NodeBuilder("while", "While")
          .Input(Arguments())
          .Attr("cond", FDH::FunctionRef("positive").proto)
          .Attr("body", FDH::FunctionRef("assigns_and_returns").proto));
  ExpectLeaderOnly({"change", "function assigns_and_returns"});
}

TEST_F(GraphTraitsTest, AFunctionIsLookedIntoOnceAndMustBeKnown) {
  Call("recurs", "PartitionedCall");
  ExpectAnyGroup();
  Call("nobody_knows", "PartitionedCall");
  EXPECT_NE(ClassifyGraph(*graph_, nullptr).leader_only, "");
  ExpectLeaderOnly({"nobody_knows", "not in the library"});
}

// The registry calls recurrent layers of cuDNN stateful for the sake of
// dropout.
TEST_F(GraphTraitsTest, RecurrentLayersRunOnAnyGroupUnlessTheyDropValues) {
  const auto add_layer = [&](float dropout) {
    Node* x = Add(NodeBuilder("x", "Placeholder").Attr("dtype", DT_FLOAT));
    Node* lengths =
        Add(NodeBuilder("lengths", "Placeholder").Attr("dtype", DT_INT32));
    Add(NodeBuilder("layer", "CudnnRNNV3")
            .Input(x)
            .Input(x)
            .Input(x)
            .Input(x)
            .Input(lengths)
            .Attr("dropout", dropout));
  };
  add_layer(0);
  ExpectAnyGroup();
  add_layer(0.5);
  ExpectLeaderOnly({"layer", "CudnnRNNV3", "stateful"});
}

TEST_F(GraphTraitsTest, ArgumentsAndReturnValuesAreSeen) {
  Add(NodeBuilder("v", "_Arg").Attr("T", DT_RESOURCE).Attr("index", 0));
  EXPECT_FALSE(Classify().takes_tensors);
  Add(NodeBuilder("x", "_Arg").Attr("T", DT_FLOAT).Attr("index", 1));
  EXPECT_TRUE(Classify().takes_tensors);
  ExpectAnyGroup();
  Add(NodeBuilder("return", "_Retval").Input(Constant("c")).Attr("index", 0));
  EXPECT_TRUE(Classify().has_return_values);
  ExpectAnyGroup();
}

TEST(KeepsScratchTest, KernelsWithScratchBetweenCallsAreKnown) {
  for (const char* op : {"CudnnRNN", "CudnnRNNV3", "CudnnRNNBackprop", "FFT",
                         "RFFT2D", "IRFFT", "BatchFFT3D"}) {
    EXPECT_TRUE(KeepsScratch(op)) << op;
  }
  for (const char* op : {"MatMul", "Conv2D", "Const", "Cholesky"}) {
    EXPECT_FALSE(KeepsScratch(op)) << op;
  }
}

// The leader's variable must not become memory of another group. An op that
// nobody knows may keep its inputs, too.
TEST(MayKeepInputsTest, OnlyOpsThatComputeANewValueDoNot) {
  for (const char* op :
       {"Assign", "AssignVariableOp", "SomebodysAssign", "VariableApply", ""}) {
    EXPECT_TRUE(MayKeepInputs(op)) << op;
  }
  for (const char* op :
       {"ResourceApplyGradientDescent", "ResourceApplyAdam",
        "ResourceSparseApplyAdagrad", "ApplyAdam", "SparseApplyFtrl",
        "AssignAddVariableOp", "AssignSubVariableOp", "AssignAdd", "AssignSub",
        "ResourceScatterNdUpdate", "ScatterNdUpdate"}) {
    EXPECT_FALSE(MayKeepInputs(op)) << op;
    // A misspelled op would make the test idle.
    const OpDef* op_def = nullptr;
    EXPECT_TRUE(OpRegistry::Global()->LookUpOpDef(op, &op_def).ok()) << op;
  }
}

TEST(MayChangeStateTest, OnlyKernelsThatWriteWhatTheyAreGiven) {
  using Builder = NodeDefBuilder;
  const std::pair<Builder, bool> kernels[] = {
      {Builder("n", "ReadVariableOp")
           .Input("v", 0, DT_RESOURCE)
           .Attr("dtype", DT_FLOAT),
       false},
      {Builder("n", "Identity").Input("v", 0, DT_RESOURCE), false},
      {Builder("n", "Relu").Input("x", 0, DT_FLOAT), false},
      {Builder("n", "AssignVariableOp")
           .Input("v", 0, DT_RESOURCE)
           .Input("x", 0, DT_FLOAT),
       true},
      {Builder("n", "Assign")
           .Input("v", 0, DT_FLOAT_REF)
           .Input("x", 0, DT_FLOAT),
       true}};
  for (const auto& [builder, changes_state] : kernels) {
    NodeDef node;
    absl::Status status = NodeDefBuilder(builder).Finalize(&node);
    ASSERT_TRUE(status.ok()) << status;
    const std::unique_ptr<OpKernel> kernel = KernelOf(node);
    ASSERT_NE(kernel, nullptr);
    EXPECT_EQ(MayChangeState(*kernel, /*library=*/nullptr), changes_state)
        << node.op();
  }
}

}  // namespace
}  // namespace tensorflow::multistream
