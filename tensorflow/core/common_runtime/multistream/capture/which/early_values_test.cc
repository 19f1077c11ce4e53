// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/early_values.h"

#include <gtest/gtest.h>

#include <string>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kHost[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

class EarlyValuesTest : public ::testing::Test {
 protected:
  static Node* Argument(Graph* graph) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("x", "_Arg")
                    .Attr("T", DT_FLOAT)
                    .Attr("index", 0)
                    .Finalize(graph, &node));
    return node;
  }
  static Node* Of(Graph* graph, const char* op, Node* input) {
    Node* node;
    TF_CHECK_OK(NodeBuilder(op, op).Input(input).Finalize(graph, &node));
    return node;
  }
  static Node* Receive(Graph* graph, const std::string& name, const char* from,
                       const char* to) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("receive_" + name, "_Recv")
                    .Attr("tensor_type", DT_FLOAT)
                    .Attr("tensor_name", name)
                    .Attr("send_device", from)
                    .Attr("send_device_incarnation", 1)
                    .Attr("recv_device", to)
                    .Finalize(graph, &node));
    return node;
  }
  static void Send(Graph* graph, Node* value, const std::string& name,
                   const char* from, const char* to) {
    Node* node;
    TF_CHECK_OK(NodeBuilder("send_" + name, "_Send")
                    .Input(value)
                    .Attr("tensor_name", name)
                    .Attr("send_device", from)
                    .Attr("send_device_incarnation", 1)
                    .Attr("recv_device", to)
                    .Finalize(graph, &node));
  }
  void Mark() {
    Graph* const parts[] = {&gpu_, &host_};
    MarkEarlyValues(parts);
  }

  Graph host_{OpRegistry::Global()};
  Graph gpu_{OpRegistry::Global()};
  Node* const received_ = Receive(&gpu_, "value", kHost, kGpu);
};

TEST_F(EarlyValuesTest, AnArgumentAndWhatIsComputedFromIt) {
  Send(&host_, Of(&host_, "Exp", Of(&host_, "Neg", Argument(&host_))), "value",
       kHost, kGpu);
  EXPECT_FALSE(IsEarlyValue(*received_));
  Mark();
  EXPECT_TRUE(IsEarlyValue(*received_));
}

TEST_F(EarlyValuesTest, WhatComesFromTheGpuMayWaitForTheStep) {
  Node* back = Receive(&host_, "back", kGpu, kHost);
  Send(&gpu_, Of(&gpu_, "Neg", received_), "back", kGpu, kHost);
  Send(&host_, Of(&host_, "Exp", back), "value", kHost, kGpu);
  Mark();
  EXPECT_FALSE(IsEarlyValue(*received_));
  EXPECT_FALSE(IsEarlyValue(*back));
}

TEST_F(EarlyValuesTest, AControlEdgeIsAWait) {
  Node* x = Argument(&host_);
  Send(&host_, x, "value", kHost, kGpu);
  Node* send = nullptr;
  for (Node* node : host_.op_nodes()) {
    if (node->IsSend()) send = node;
  }
  host_.AddControlEdge(Receive(&host_, "back", kGpu, kHost), send);
  Mark();
  EXPECT_FALSE(IsEarlyValue(*received_));
}

TEST_F(EarlyValuesTest, AVariableOfTheHostAndTheNextBatch) {
  Node *handle, *add, *read, *iterator, *batch;
  TF_CHECK_OK(NodeBuilder("steps", "VarHandleOp")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", TensorShape({}))
                  .Finalize(&host_, &handle));
  TF_CHECK_OK(NodeBuilder("iterator", "IteratorV2")
                  .Attr("shared_name", "")
                  .Attr("container", "")
                  .Attr("output_types", DataTypeVector{DT_FLOAT})
                  .Attr("output_shapes", {PartialTensorShape({1})})
                  .Finalize(&host_, &iterator));
  TF_CHECK_OK(NodeBuilder("batch", "IteratorGetNext")
                  .Input(iterator)
                  .Attr("output_types", DataTypeVector{DT_FLOAT})
                  .Attr("output_shapes", {PartialTensorShape({1})})
                  .Finalize(&host_, &batch));
  TF_CHECK_OK(NodeBuilder("add", "AssignAddVariableOp")
                  .Input(handle)
                  .Input(Argument(&host_))
                  .ControlInput(batch)
                  .Finalize(&host_, &add));
  TF_CHECK_OK(NodeBuilder("read", "ReadVariableOp")
                  .Input(handle)
                  .Attr("dtype", DT_FLOAT)
                  .ControlInput(add)
                  .Finalize(&host_, &read));
  Send(&host_, read, "value", kHost, kGpu);
  Mark();
  EXPECT_TRUE(IsEarlyValue(*received_));
}

// A queue is an example: the step itself may fill the queue.
TEST_F(EarlyValuesTest, AnOpWithStateMayWaitForAnotherOne) {
  Node* node;
  TF_CHECK_OK(NodeBuilder("variable", "VariableV2")
                  .Attr("dtype", DT_FLOAT)
                  .Attr("shape", TensorShape({}))
                  .Finalize(&host_, &node));
  Send(&host_, Of(&host_, "Identity", node), "value", kHost, kGpu);
  Mark();
  EXPECT_FALSE(IsEarlyValue(*received_));
}

TEST_F(EarlyValuesTest, OnlyWhatIsSentThereUnderItsName) {
  Send(&host_, Argument(&host_), "value", kHost,
       "/job:a/replica:0/task:0/device:GPU:1");
  Send(&host_, Argument(&host_), "other", kHost, kGpu);
  Mark();
  EXPECT_FALSE(IsEarlyValue(*received_));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
