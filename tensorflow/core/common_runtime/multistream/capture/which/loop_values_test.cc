// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/loop_values.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kHost[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

// A loop that counts on `counts_on`, and carries a value.
class LoopValuesTest : public ::testing::Test {
 protected:
  void Make(const std::string& counts_on, DataType type = DT_FLOAT) {
    Node* zero = Const("zero", counts_on);
    Node* count_enter = Enter("count", zero, counts_on);
    Node* count = Merge("count", count_enter, counts_on);
    Node* limit = Enter("limit", Const("ten", counts_on), counts_on, true);
    Node* less =
        On(counts_on, NodeBuilder("less", "Less").Input(count).Input(limit));
    condition_ =
        On(counts_on, NodeBuilder("condition", "LoopCond").Input(less));
    Node* count_switch = Switch("count", count, counts_on);
    Node* step =
        On(counts_on,
           NodeBuilder("add", "AddV2")
               .Input(count_switch, 1)
               .Input(Enter("one", Const("one_", counts_on), counts_on, true)));
    Close(count, "count", step, counts_on);
    argument_ =
        On(kHost, NodeBuilder("x", "_Arg").Attr("T", type).Attr("index", 0));
    enter_ = Enter("x", argument_, kHost);
    Node* merge = Merge("x", enter_, kHost);
    Node* turn = Switch("x", merge, kHost);
    body_ = On(kHost, NodeBuilder("body", "Identity").Input(turn, 1));
    exit_ = On(kHost, NodeBuilder("exit", "Exit").Input(turn, 0));
    loop_ = {enter_, merge, turn, body_, exit_};
    loop_.push_back(Close(merge, "x", body_, kHost));
  }

  Node* On(const std::string& device, NodeBuilder builder) {
    Node* node;
    TF_CHECK_OK(builder.Finalize(&graph_, &node));
    node->set_assigned_device_name(device);
    return node;
  }
  Node* Const(const std::string& name, const std::string& device) {
    Tensor value(DT_INT32, TensorShape({}));
    value.scalar<int>()() = 1;
    return On(device, NodeBuilder(name, "Const")
                          .Attr("dtype", DT_INT32)
                          .Attr("value", value));
  }
  Node* Enter(const std::string& name, Node* value, const std::string& device,
              bool is_constant = false) {
    return On(device, NodeBuilder(name + "_enter", "Enter")
                          .Input(value)
                          .Attr("frame_name", "loop")
                          .Attr("is_constant", is_constant));
  }
  Node* Merge(const std::string& name, Node* enter, const std::string& device) {
    return On(device,
              NodeBuilder(name + "_merge", "Merge").Input({enter, enter}));
  }
  Node* Switch(const std::string& name, Node* merge,
               const std::string& device) {
    return On(
        device,
        NodeBuilder(name + "_switch", "Switch").Input(merge).Input(condition_));
  }
  Node* Close(Node* merge, const std::string& name, Node* value,
              const std::string& device) {
    Node* next =
        On(device, NodeBuilder(name + "_next", "NextIteration").Input(value));
    TF_CHECK_OK(graph_.UpdateEdge(next, 0, merge, 1));
    return next;
  }

  Graph graph_{OpRegistry::Global()};
  Node *condition_, *argument_, *enter_, *body_, *exit_;
  std::vector<Node*> loop_;  // the nodes that the value passes through
};

TEST_F(LoopValuesTest, WhatComesFromTheHostGoesRoundOnTheGpu) {
  Make(kGpu);
  MoveLoopValues(&graph_);
  for (const Node* node : loop_) {
    EXPECT_EQ(node->assigned_device_name(), kGpu) << node->name();
  }
  EXPECT_EQ(argument_->assigned_device_name(), kHost);
}

TEST_F(LoopValuesTest, ALoopThatComputesOnTheHostStaysAsItIs) {
  Make(kGpu);
  On(kHost, NodeBuilder("tanh", "Tanh").Input(body_));
  MoveLoopValues(&graph_);
  for (const Node* node : loop_) {
    EXPECT_EQ(node->assigned_device_name(), kHost) << node->name();
  }
}

TEST_F(LoopValuesTest, ALoopOfTheHostStaysThere) {
  Make(kHost);
  enter_->set_assigned_device_name(kGpu);
  MoveLoopValues(&graph_);
  EXPECT_EQ(condition_->assigned_device_name(), kHost);
  EXPECT_EQ(enter_->assigned_device_name(), kGpu);
}

TEST_F(LoopValuesTest, AGraphWithoutLoopsIsNotTouched) {
  Node* x =
      On(kHost, NodeBuilder("x", "_Arg").Attr("T", DT_FLOAT).Attr("index", 0));
  On(kHost, NodeBuilder("identity", "Identity").Input(x));
  const int edges = graph_.num_edges();
  MoveLoopValues(&graph_);
  EXPECT_EQ(graph_.num_edges(), edges);
  EXPECT_EQ(x->assigned_device_name(), kHost);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
