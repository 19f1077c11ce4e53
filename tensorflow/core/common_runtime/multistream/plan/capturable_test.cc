/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/plan/capturable.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
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
                    .Attr("tensor_name", "edge_5__arg_" + name)
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
  std::string Obstacle() { return ClassifyForCapture(graph_).obstacle; }

  Graph graph_{OpRegistry::Global()};
};

TEST_F(CapturableTest, KeysAreThoseOfWhatIsReceivedAndSent) {
  Send("y", Of("tanh", "Tanh", Receive("x", DT_FLOAT)));
  const Capturable found = ClassifyForCapture(graph_);
  EXPECT_EQ(found.obstacle, "");
  ASSERT_EQ(found.receives.size(), 1);
  ASSERT_EQ(found.sends.size(), 1);
  EXPECT_TRUE(absl::StrContains(found.receives[0], ";edge_5__arg_x;0:0"));
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

// It may wait for a result of this graph.
TEST_F(CapturableTest, WhatAnOpOnTheHostComputesIsInTheWay) {
  Node* x = Receive("x", DT_FLOAT);
  Send("y", Of("tanh", "Tanh", x));
  for (const char* name : {"edge_5_a__arg_x", "edge__arg_x", "edge_5_", "x"}) {
    x->ClearAttr("tensor_name");
    x->AddAttr("tensor_name", name);
    EXPECT_TRUE(absl::StrContains(Obstacle(), "_Recv 'x' receives what an op"))
        << name << ": " << Obstacle();
  }
}

TEST_F(CapturableTest, StringsAreInTheWay) {
  Send("y", Of("same", "Identity", Receive("x", DT_STRING)));
  EXPECT_TRUE(absl::StrContains(Obstacle(), "has a string")) << Obstacle();
}

TEST_F(CapturableTest, AGraphWithoutResultsIsNothingToCapture) {
  Of("tanh", "Tanh", Receive("x", DT_FLOAT));
  EXPECT_EQ(Obstacle(), "the graph sends no result");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
