// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

namespace tensorflow {
namespace multistream {
namespace {

using FDH = FunctionDefHelper;
using Names = absl::flat_hash_set<std::string>;

// A function that returns its float after `nodes` have run on it and on a
// resource. Every node is {name, op, inputs out of "v" and "x"}.
FunctionDef FunctionOf(const std::string& name,
                       const std::vector<FDH::Node>& nodes) {
  std::vector<FDH::Node> all = nodes;
  all.push_back({{"y"}, "Identity", {"x"}, {{"T", DT_FLOAT}}});
  return FDH::Create(name, {"v: resource", "x: float"}, {"y: float"}, {}, all,
                     {{"y", "y:output:0"}});
}

class GraphTraitsTest : public ::testing::Test {
 protected:
  GraphTraitsTest()
      : library_(OpRegistry::Global(), FunctionDefLibrary()),
        graph_(&library_) {}

  Node* Add(const NodeBuilder& builder) {
    Node* node = nullptr;
    const absl::Status status = NodeBuilder(builder).Finalize(&graph_, &node);
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

  void Define(const FunctionDef& function) {
    const absl::Status status = library_.AddFunctionDef(function);
    EXPECT_TRUE(status.ok()) << status;
  }
  // A function with one node that changes its variable.
  void DefineAssigning(const std::string& name) {
    Define(FunctionOf(
        name,
        {{{"change"}, "AssignVariableOp", {"v", "x"}, {{"dtype", DT_FLOAT}}}}));
  }

  Node* Call(const std::string& name, const std::string& function) {
    return Call(name, function, "PartitionedCall");
  }
  Node* Call(const std::string& name, const std::string& function,
             const std::string& op) {
    return Add(NodeBuilder(name, op)
                   .Input(std::vector<NodeBuilder::NodeOut>{
                       Handle(name + "_v"), Constant(name + "_x")})
                   .Attr("Tout", DataTypeVector({DT_FLOAT}))
                   .Attr("f", FDH::FunctionRef(function).proto));
  }

  GraphTraits Classify() { return ClassifyGraph(graph_, &library_); }

  void ExpectAnyGroup() { EXPECT_EQ(Classify().leader_only, ""); }
  void ExpectLeaderOnly(std::initializer_list<const char*> parts) {
    const std::string reason = Classify().leader_only;
    EXPECT_FALSE(reason.empty());
    for (const char* part : parts) {
      EXPECT_NE(reason.find(part), std::string::npos)
          << "'" << part << "' is not in '" << reason << "'";
    }
  }

  FunctionLibraryDefinition library_;
  Graph graph_;
};

TEST_F(GraphTraitsTest, AFrozenGraphRunsOnAnyGroup) {
  Node* c = Constant("c");
  Add(NodeBuilder("sum", "AddV2").Input(c).Input(Unary("relu", "Relu", c)));
  const GraphTraits traits = Classify();
  EXPECT_EQ(traits.leader_only, "");
  EXPECT_EQ(traits.readers, Names());
  EXPECT_FALSE(traits.has_arguments);
  EXPECT_FALSE(traits.has_return_values);
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
  const GraphTraits traits = Classify();
  EXPECT_EQ(traits.leader_only, "");
  EXPECT_EQ(traits.readers, Names({"read", "gather"}));
}

TEST_F(GraphTraitsTest, AnAssignmentRunsOnTheLeaderAndIsNamed) {
  Add(NodeBuilder("the_change", "AssignVariableOp")
          .Input(Handle("v"))
          .Input(Constant("c")));
  ExpectLeaderOnly({"the_change", "AssignVariableOp", "may change a variable"});
}

TEST_F(GraphTraitsTest, OptimizerAndScatterOpsRunOnTheLeader) {
  Add(NodeBuilder("descend", "ResourceApplyGradientDescent")
          .Input(Handle("v"))
          .Input(Constant("rate"))
          .Input(Constant("gradient")));
  ExpectLeaderOnly({"descend", "ResourceApplyGradientDescent"});
}

TEST_F(GraphTraitsTest, AReferenceVariableMakesEveryOpAReader) {
  Unary("relu", "Relu", Unary("read", "Identity", Reference("v")));
  Constant("c");
  const GraphTraits traits = Classify();
  EXPECT_EQ(traits.leader_only, "");
  EXPECT_EQ(traits.readers, Names({"v", "read", "relu", "c"}));
}

// Calls and receives wait for other nodes, and those may read the variable.
TEST_F(GraphTraitsTest, NeitherCallsNorWhatReceivesReadAReference) {
  Define(FunctionOf("nothing", {}));
  Call("call", "nothing");
  Add(NodeBuilder("receive", "_Recv")
          .Attr("tensor_type", DT_FLOAT)
          .Attr("tensor_name", "t")
          .Attr("send_device", "/cpu:0")
          .Attr("send_device_incarnation", int64_t{1})
          .Attr("recv_device", "/gpu:0"));
  EXPECT_EQ(Classify().readers, Names());
  EXPECT_FALSE(Classify().has_references);
  Reference("v");
  const GraphTraits traits = Classify();
  EXPECT_TRUE(traits.has_references);
  EXPECT_EQ(traits.readers, Names({"v", "call_v", "call_x"}));
}

TEST_F(GraphTraitsTest, AnAssignmentToAReferenceRunsOnTheLeader) {
  Add(NodeBuilder("the_change", "Assign")
          .Input(Reference("v"))
          .Input(Constant("c")));
  ExpectLeaderOnly({"the_change", "Assign"});
}

TEST_F(GraphTraitsTest, AHarmlessFunctionRunsOnAnyGroup) {
  Define(FunctionOf(
      "reads", {{{"read"}, "ReadVariableOp", {"v"}, {{"dtype", DT_FLOAT}}}}));
  Call("call", "reads");
  Call("stateful_call", "reads", "StatefulPartitionedCall");
  const GraphTraits traits = Classify();
  EXPECT_EQ(traits.leader_only, "");
  // The node in the function reads the variable, not the call.
  EXPECT_EQ(traits.readers, Names());
}

TEST_F(GraphTraitsTest, AnAssignmentInACalledFunctionIsFound) {
  DefineAssigning("assigns");
  Call("call", "assigns");
  ExpectLeaderOnly({"change", "AssignVariableOp", "function assigns"});
}

TEST_F(GraphTraitsTest, AnAssignmentInAFunctionThatAFunctionCallsIsFound) {
  DefineAssigning("assigns");
  Define(FunctionOf("calls", {{{"inner"},
                               "StatefulPartitionedCall",
                               {"v", "x"},
                               {{"Tin", DataTypeSlice({DT_RESOURCE, DT_FLOAT})},
                                {"Tout", DataTypeSlice({DT_FLOAT})},
                                {"f", FDH::FunctionRef("assigns")}}}}));
  Call("call", "calls", "StatefulPartitionedCall");
  ExpectLeaderOnly({"change", "function assigns", "function calls"});
}

TEST_F(GraphTraitsTest, AnAssignmentInAFunctionThatIsTheOpIsFound) {
  DefineAssigning("assigns");
  Add(NodeBuilder("call", "assigns", &library_)
          .Input(Handle("v"))
          .Input(Constant("x")));
  ExpectLeaderOnly({"change", "function assigns"});
}

TEST_F(GraphTraitsTest, AnAssignmentInABranchIsFound) {
  Define(FunctionOf("keeps", {}));
  DefineAssigning("assigns");
  Add(NodeBuilder("if", "If")
          .Input(Constant("condition"))
          .Input(std::vector<NodeBuilder::NodeOut>{Handle("v"), Constant("x")})
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("then_branch", FDH::FunctionRef("keeps").proto)
          .Attr("else_branch", FDH::FunctionRef("assigns").proto));
  ExpectLeaderOnly({"change", "function assigns"});
}

TEST_F(GraphTraitsTest, AnAssignmentInACaseIsFound) {
  Define(FunctionOf("keeps", {}));
  DefineAssigning("assigns");
  AttrValue branches;
  for (const char* name : {"keeps", "assigns"}) {
    branches.mutable_list()->add_func()->set_name(name);
  }
  Add(NodeBuilder("case", "Case")
          .Input(Index("i"))
          .Input(std::vector<NodeBuilder::NodeOut>{Handle("v"), Constant("x")})
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("branches", branches));
  ExpectLeaderOnly({"change", "function assigns"});
}

TEST_F(GraphTraitsTest, AnAssignmentInALoopsBodyIsFound) {
  Define(FDH::Create(
      "positive", {"v: resource", "x: float"}, {"y: bool"}, {},
      {{{"y"}, "Cast", {"x"}, {{"SrcT", DT_FLOAT}, {"DstT", DT_BOOL}}}},
      {{"y", "y:y:0"}}));
  Define(FDH::Create(
      "assigns", {"v: resource", "x: float"}, {"w: resource", "y: float"}, {},
      {{{"change"}, "AssignVariableOp", {"v", "x"}, {{"dtype", DT_FLOAT}}},
       {{"w"}, "Identity", {"v"}, {{"T", DT_RESOURCE}}},
       {{"y"}, "Identity", {"x"}, {{"T", DT_FLOAT}}}},
      {{"w", "w:output:0"}, {"y", "y:output:0"}}));
  Add(NodeBuilder("while", "While")
          .Input(std::vector<NodeBuilder::NodeOut>{Handle("v"), Constant("x")})
          .Attr("cond", FDH::FunctionRef("positive").proto)
          .Attr("body", FDH::FunctionRef("assigns").proto));
  ExpectLeaderOnly({"change", "function assigns"});
}

TEST_F(GraphTraitsTest, AFunctionThatCallsItselfIsLookedIntoOnce) {
  Define(
      FunctionOf("recurs", {{{"again"},
                             "PartitionedCall",
                             {"v", "x"},
                             {{"Tin", DataTypeSlice({DT_RESOURCE, DT_FLOAT})},
                              {"Tout", DataTypeSlice({DT_FLOAT})},
                              {"f", FDH::FunctionRef("recurs")}}}}));
  Call("call", "recurs");
  ExpectAnyGroup();
}

TEST_F(GraphTraitsTest, AnUnknownFunctionRunsOnTheLeader) {
  Call("call", "nobody_knows");
  ExpectLeaderOnly({"nobody_knows", "not in the library"});
  EXPECT_NE(ClassifyGraph(graph_, nullptr).leader_only, "");
}

TEST_F(GraphTraitsTest, AStatefulOpRunsOnTheLeader) {
  Add(NodeBuilder("the_queue", "FIFOQueueV2")
          .Attr("component_types", DataTypeVector({DT_FLOAT})));
  ExpectLeaderOnly({"the_queue", "FIFOQueueV2", "stateful"});
}

// The registry calls recurrent layers of cuDNN stateful for the sake of
// dropout.
TEST_F(GraphTraitsTest, RecurrentLayersRunOnAnyGroupUnlessTheyDropValues) {
  Node* x = Add(NodeBuilder("x", "Placeholder").Attr("dtype", DT_FLOAT));
  Node* lengths =
      Add(NodeBuilder("lengths", "Placeholder").Attr("dtype", DT_INT32));
  const auto layer = [&](const char* name, float dropout) {
    Add(NodeBuilder(name, "CudnnRNNV3")
            .Input(x)
            .Input(x)
            .Input(x)
            .Input(x)
            .Input(lengths)
            .Attr("dropout", dropout));
  };
  layer("plain", 0);
  ExpectAnyGroup();
  layer("dropping", 0.5);
  ExpectLeaderOnly({"dropping", "CudnnRNNV3", "stateful"});
}

TEST_F(GraphTraitsTest, RandomOpsRunOnAnyGroup) {
  Node* shape = Add(NodeBuilder("shape", "Const")
                        .Attr("dtype", DT_INT32)
                        .Attr("value", Tensor(DT_INT32, TensorShape({1}))));
  for (const char* op :
       {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"}) {
    Add(NodeBuilder(op, op).Input(shape).Attr("dtype", DT_FLOAT));
  }
  ExpectAnyGroup();
}

TEST_F(GraphTraitsTest, TensorArraysRunOnAnyGroup) {
  Node* array = Add(NodeBuilder("array", "TensorArrayV3")
                        .Input(Index("size"))
                        .Attr("dtype", DT_FLOAT));
  Add(NodeBuilder("write", "TensorArrayWriteV3")
          .Input(array, 0)
          .Input(Index("i"))
          .Input(Constant("value"))
          .Input(array, 1));
  const GraphTraits traits = Classify();
  EXPECT_EQ(traits.leader_only, "");
  EXPECT_EQ(traits.readers, Names());
}

TEST_F(GraphTraitsTest, ArgumentsAreSeen) {
  Add(NodeBuilder("x", "_Arg").Attr("T", DT_FLOAT).Attr("index", 0));
  EXPECT_TRUE(Classify().has_arguments);
  ExpectAnyGroup();
}

TEST_F(GraphTraitsTest, ReturnValuesAreSeen) {
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

// The leader's variable must not become memory of another group.
TEST(MayKeepInputsTest, WhatMakesAnInputTheVariablesValueMayKeepIt) {
  for (const char* op : {"Assign", "AssignVariableOp"}) {
    EXPECT_TRUE(MayKeepInputs(op)) << op;
  }
}

TEST(MayKeepInputsTest, AnOpThatNobodyKnowsMayKeepIt) {
  for (const char* op : {"SomebodysAssign", "VariableApply", ""}) {
    EXPECT_TRUE(MayKeepInputs(op)) << op;
  }
}

TEST(MayKeepInputsTest, WhatComputesANewValueDoesNot) {
  for (const char* op : {"ResourceApplyGradientDescent", "ResourceApplyAdam",
                         "ResourceApplyMomentum", "ResourceSparseApplyAdagrad",
                         "ApplyGradientDescent", "ApplyAdam", "SparseApplyFtrl",
                         "AssignAddVariableOp", "AssignSubVariableOp",
                         "AssignAdd", "AssignSub", "ResourceScatterAdd",
                         "ResourceScatterUpdate", "ResourceScatterNdUpdate",
                         "ScatterUpdate", "ScatterAdd", "ScatterNdUpdate"}) {
    EXPECT_FALSE(MayKeepInputs(op)) << op;
    // A misspelled op would make the test idle.
    const OpDef* op_def = nullptr;
    EXPECT_TRUE(OpRegistry::Global()->LookUpOpDef(op, &op_def).ok()) << op;
  }
}

bool KernelMayChangeState(const NodeDefBuilder& builder) {
  NodeDef node;
  absl::Status status = NodeDefBuilder(builder).Finalize(&node);
  EXPECT_TRUE(status.ok()) << status;
  DeviceBase device(Env::Default());
  const std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, &device, cpu_allocator(), node,
                     TF_GRAPH_DEF_VERSION, &status);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() && MayChangeState(*kernel, /*library=*/nullptr);
}

TEST(MayChangeStateTest, OnlyKernelsThatWriteWhatTheyAreGiven) {
  EXPECT_FALSE(KernelMayChangeState(NodeDefBuilder("n", "ReadVariableOp")
                                        .Input("v", 0, DT_RESOURCE)
                                        .Attr("dtype", DT_FLOAT)));
  EXPECT_FALSE(KernelMayChangeState(
      NodeDefBuilder("n", "Identity").Input("v", 0, DT_RESOURCE)));
  EXPECT_FALSE(KernelMayChangeState(
      NodeDefBuilder("n", "Relu").Input("x", 0, DT_FLOAT)));
  EXPECT_TRUE(KernelMayChangeState(NodeDefBuilder("n", "AssignVariableOp")
                                       .Input("v", 0, DT_RESOURCE)
                                       .Input("x", 0, DT_FLOAT)));
  EXPECT_TRUE(KernelMayChangeState(NodeDefBuilder("n", "Assign")
                                       .Input("v", 0, DT_FLOAT_REF)
                                       .Input("x", 0, DT_FLOAT)));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
