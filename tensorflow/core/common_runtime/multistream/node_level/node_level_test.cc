// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Node level on emulated GPUs: results, memory, errors, loops and variables.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/while_loop.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_fixture.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

// Branches on groups 0 to 3, each of `layers` products, and their sum.
Scope Branches(bool grouped, int layers) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  std::vector<Output> ends;
  for (int branch = 0; branch < kGroups; ++branch) {
    Output y = x;
    for (int i = 0; i < layers; ++i) {
      const std::string name = (grouped ? "g" : "n") + std::to_string(branch) +
                               "_" + std::to_string(i);
      Output w = ops::Const(root, Square(32, branch * 100 + i));
      y = ops::Tanh(root.WithOpName(name + "t"),
                    ops::MatMul(root.WithOpName(name + "m"), y, w));
    }
    ends.push_back(y);
  }
  ops::AddN(root.WithOpName("sum"), ends);
  return root;
}

TEST_F(NodeLevelTest, BranchesGiveWhatOneGroupGives) {
  auto plain = GroupedSession(Branches(false, 4));
  auto grouped = GroupedSession(Branches(true, 4));
  for (int i = 0; i < 10; ++i) {
    const Tensor x = Square(32, 7 + i);
    std::vector<Tensor> wanted, got;
    ASSERT_TRUE(plain->Run({{"x:0", x}}, {"sum:0"}, {}, &wanted).ok());
    ASSERT_TRUE(grouped->Run({{"x:0", x}}, {"sum:0"}, {}, &got).ok());
    EXPECT_TRUE(SameBits(wanted[0], got[0])) << i;
  }
  EXPECT_EQ(NewReports(), 0);
  EXPECT_EQ(NewViolations(), 0);
}

TEST_F(NodeLevelTest, MemoryComesFromTheGroupOfTheNode) {
  auto session = GroupedSession(Branches(true, 4));
  std::vector<Tensor> got;
  ASSERT_TRUE(session->Run({{"x:0", Square(32, 1)}}, {"sum:0"}, {}, &got).ok());
  for (int group = 1; group < kGroups; ++group) {
    EXPECT_GT(StreamStats()[group].peak_bytes_in_use, 0) << group;
  }
  got.clear();
  EXPECT_TRUE(Eventually(
      [] { return BytesInUse(1) + BytesInUse(2) + BytesInUse(3) == 0; }));
}

// The slice shares its tensor's memory and is the last reference to it.
TEST_F(NodeLevelTest, AnOpThatWritesIntoAPartOfATensor) {
  Scope scope = GpuScope();
  auto x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  auto parts = ops::Split(scope.WithOpName("g1_parts"), 0,
                          ops::Exp(scope.WithOpName("g1_exp"), x), 4);
  auto row = ops::Reshape(scope.WithOpName("g1_row"), parts[1], {-1});
  ops::Neg(scope.WithOpName("g1_neg"), row);
  const std::unique_ptr<Session> session = GroupedSession(scope);
  for (int i = 0; i < 10; ++i) {
    Tensor fed(DT_FLOAT, {8, 64});
    fed.flat<float>().setZero();
    std::vector<Tensor> results;
    const absl::Status status =
        session->Run({{"x", fed}}, {"g1_neg"}, {}, &results);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(results[0].flat<float>()(127), -1);
  }
  EXPECT_EQ(NewReports(), 0);
}

TEST_F(NodeLevelTest, AGroupThatIsNotThereIsNamed) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Neg(root.WithOpName("g7_far"), x);
  auto session = GroupedSession(root);
  std::vector<Tensor> got;
  const absl::Status status =
      session->Run({{"x:0", Square(4, 1)}}, {"g7_far:0"}, {}, &got);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("g7_far"), std::string::npos) << status;
  EXPECT_NE(status.message().find("group 7"), std::string::npos) << status;
  EXPECT_NE(status.message().find("has 4"), std::string::npos) << status;
}

TEST_F(NodeLevelTest, LoopsOverGroups) {
  auto build = [](bool grouped) {
    Scope root = GpuScope();
    Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    const std::string a = grouped ? "g1" : "n1";
    const std::string b = grouped ? "g2" : "n2";
    Output i = ops::Const(root, 0);
    OutputList outputs;
    EXPECT_TRUE(
        ops::BuildWhileLoop(
            root, {i, x},
            [](const Scope& scope, const std::vector<Output>& in, Output* out) {
              *out = ops::Less(scope, in[0], 20);
              return scope.status();
            },
            [&](const Scope& scope, const std::vector<Output>& in,
                std::vector<Output>* out) {
              out->push_back(ops::Add(scope, in[0], 1));
              // Names in a loop begin with the loop's, so the scope is new.
              Output y = ops::Tanh(scope.WithOpName(a), in[1]);
              Output z = ops::Sin(scope.WithOpName(b), in[1]);
              out->push_back(ops::Add(scope, y, z));
              return scope.status();
            },
            "loop", &outputs)
            .ok());
    ops::Identity(root.WithOpName("y"), outputs[1]);
    return root;
  };
  auto session = [&](bool grouped) {
    GraphDef graph;
    EXPECT_TRUE(build(grouped).ToGraphDef(&graph).ok());
    int marked = 0;
    for (NodeDef& node : *graph.mutable_node()) {
      for (int group = 1; group < kGroups; ++group) {
        if (node.name().find("/g" + std::to_string(group)) !=
            std::string::npos) {
          (*node.mutable_attr())[kStreamGroupAttr].set_i(group);
          ++marked;
        }
      }
    }
    EXPECT_EQ(marked, grouped ? 2 : 0);
    Session* made = nullptr;
    EXPECT_TRUE(NewSession(PlainOptions(), &made).ok());
    EXPECT_TRUE(made->Create(graph).ok());
    return std::unique_ptr<Session>(made);
  };
  std::vector<Tensor> wanted, got;
  const Tensor x = Square(16, 3);
  ASSERT_TRUE(session(false)->Run({{"x:0", x}}, {"y:0"}, {}, &wanted).ok());
  ASSERT_TRUE(session(true)->Run({{"x:0", x}}, {"y:0"}, {}, &got).ok());
  EXPECT_TRUE(SameBits(wanted[0], got[0]));
  EXPECT_EQ(NewReports(), 0);
}

TEST_F(NodeLevelTest, VariablesAreReadByAllAndChangedByTheLeader) {
  Scope root = GpuScope();
  Output var =
      ops::VarHandleOp(root.WithOpName("var"), DT_FLOAT, TensorShape({32, 32}));
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::AssignVariableOp(root.WithOpName("init"), var, x);
  std::vector<Output> all;
  for (int group = 0; group < kGroups; ++group) {
    const std::string name = "g" + std::to_string(group);
    Output read =
        ops::ReadVariableOp(root.WithOpName(name + "_read"), var, DT_FLOAT);
    all.push_back(ops::Square(root.WithOpName(name + "_square"), read));
  }
  Output sum = ops::AddN(root.WithOpName("sum"), all);
  // The op is in a scope, and yet the leader changes the variable.
  ops::AssignAddVariableOp(
      root.WithOpName("g3_add").WithControlDependencies(sum), var, sum);
  auto session = GroupedSession(root);
  Tensor one(DT_FLOAT, TensorShape({32, 32}));
  one.flat<float>().setConstant(0.01f);
  ASSERT_TRUE(session->Run({{"x:0", one}}, {}, {"init"}, nullptr).ok());
  float wanted = 0.01f;
  for (int i = 0; i < 20; ++i) {
    std::vector<Tensor> got;
    ASSERT_TRUE(session->Run({}, {"sum:0"}, {"g3_add"}, &got).ok());
    const float square = wanted * wanted;
    const float all_squares = square + square + square + square;
    EXPECT_EQ(got[0].flat<float>()(17), all_squares) << i;
    wanted += all_squares;
  }
  EXPECT_EQ(NewReports(), 0);
  EXPECT_EQ(NewViolations(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
