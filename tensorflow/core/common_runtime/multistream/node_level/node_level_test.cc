// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Node level on emulated GPUs: results, memory, errors, loops and training.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/no_op.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/training_ops.h"
#include "tensorflow/cc/ops/while_loop.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_fixture.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_util.h"

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

TEST_F(NodeLevelTest, BranchesGiveWhatOneGroupGivesInMemoryOfTheirGroups) {
  auto plain = GroupedSession(Branches(false, 4));
  auto grouped = GroupedSession(Branches(true, 4));
  for (int i = 0; i < 10; ++i) {
    const Tensor x = Square(32, 7 + i);
    EXPECT_TRUE(SameBits(RunOnce(plain.get(), x, "sum:0"),
                         RunOnce(grouped.get(), x, "sum:0")))
        << i;
  }
  ExpectNoFaults();
  for (int group = 1; group < kGroups; ++group) {
    EXPECT_GT(StreamStats()[group].peak_bytes_in_use, 0) << group;
  }
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
  Tensor fed(DT_FLOAT, {8, 64});
  fed.flat<float>().setZero();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunOnce(session.get(), fed, "g1_neg").flat<float>()(127), -1);
  }
  ExpectNoFaults();
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
  auto run = [](const std::string& a, const std::string& b) {
    Scope root = GpuScope();
    Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
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
              Output y = ops::Tanh(scope.WithOpName(a), in[1]);
              Output z = ops::Sin(scope.WithOpName(b), in[1]);
              out->push_back(ops::Add(scope, y, z));
              return scope.status();
            },
            "loop", &outputs)
            .ok());
    ops::Identity(root.WithOpName("y"), outputs[1]);
    return RunOnce(GroupedSession(root).get(), Square(16, 3), "y:0");
  };
  EXPECT_TRUE(SameBits(run("n1", "n2"), run("g1", "g2")));
  ExpectNoFaults();
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
  ExpectNoFaults();
}

// A training step of four branches that meet in a loss, each with an optimizer
// of its own. Their groups read the variables, and make the gradients.
//
//   group 1  read w1, x * w1, tanh --        -- gradient --
//   group 2  read w2, x * w2, tanh --- loss --- gradient --- updates
//   ...
//
// So all reads are before all updates, and no update needs to make a copy.
Scope Training(bool grouped) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto variable = [&](const std::string& name, int seed) {
    Output handle = ops::VarHandleOp(root, DT_FLOAT, TensorShape({32, 32}),
                                     ops::VarHandleOp::SharedName(name));
    ops::AssignVariableOp(root.WithOpName("init_" + name), handle,
                          ops::Const(root, Square(32, seed)));
    return handle;
  };
  std::vector<std::string> names;
  std::vector<Output> weights, ends;
  for (int branch = 0; branch < kGroups; ++branch) {
    names.push_back((grouped ? "g" : "n") + std::to_string(branch) + "_");
    weights.push_back(variable("w" + std::to_string(branch), 50 + branch));
    Output read = ops::ReadVariableOp(root.WithOpName(names.back() + "read"),
                                      weights.back(), DT_FLOAT);
    Output product =
        ops::MatMul(root.WithOpName(names.back() + "product"), x, read);
    ends.push_back(ops::Tanh(root.WithOpName(names.back() + "tanh"), product));
  }
  Output loss = ops::AddN(root.WithOpName("loss"), ends);
  Output rate = ops::Const(root, 0.01f);
  std::vector<Operation> updates;
  for (int branch = 0; branch < kGroups; ++branch) {
    Output back =
        ops::Mul(root.WithOpName(names[branch] + "back"), loss, ends[branch]);
    Output gradient = ops::MatMul(root.WithOpName(names[branch] + "gradient"),
                                  x, back, ops::MatMul::TransposeA(true));
    const Scope update = root.WithOpName("update" + std::to_string(branch));
    const Output& w = weights[branch];
    if (branch == 2) {
      updates.push_back(
          ops::ResourceApplyMomentum(update, w, variable("momentum", 60), rate,
                                     gradient, ops::Const(root, 0.9f))
              .operation);
    } else if (branch == 3) {
      updates.push_back(ops::AssignSubVariableOp(
                            update, w,
                            ops::Mul(root.WithOpName(names[branch] + "small"),
                                     rate, gradient))
                            .operation);
    } else {
      updates.push_back(
          ops::ResourceApplyGradientDescent(update, w, rate, gradient)
              .operation);
    }
  }
  ops::NoOp(root.WithOpName("train").WithControlDependencies(updates));
  return root;
}

// The variable's value, in its buffer.
Tensor ValueOf(Session* session, const std::string& variable) {
  const core::RefCountPtr<Var> found = FindVariable(session, variable);
  if (found == nullptr) return Tensor();
  mutex_lock lock(*found->mu());
  return *found->tensor();
}

// Other groups' holds of a variable, which last until the step ends, are
// released before the change, so variables change in place.
TEST_F(NodeLevelTest, TrainingInBranchesGivesWhatOneGroupGivesInPlace) {
  const std::vector<std::string> variables = {"w0", "w1", "w2", "w3",
                                              "momentum"};
  auto plain = GroupedSession(Training(false));
  auto grouped = GroupedSession(Training(true));
  for (Session* session : {plain.get(), grouped.get()}) {
    for (const std::string& name : variables) {
      ASSERT_TRUE(session->Run({}, {}, {"init_" + name}, nullptr).ok());
    }
  }
  const Tensor before = tensor::DeepCopy(ValueOf(plain.get(), "w1"));
  std::map<std::string, const void*> buffers;
  for (int i = 0; i <= 10; ++i) {
    const Tensor x = Square(32, 7 + i);
    EXPECT_TRUE(SameBits(RunOnce(plain.get(), x, "loss:0", {"train"}),
                         RunOnce(grouped.get(), x, "loss:0", {"train"})))
        << i;
    for (const std::string& name : variables) {
      const Tensor value = ValueOf(grouped.get(), name);
      EXPECT_TRUE(SameBits(ValueOf(plain.get(), name), value))
          << name << " after step " << i;
      // Before the first step, variables may share buffers with constants.
      if (i == 0) buffers[name] = value.data();
      EXPECT_EQ(value.data(), buffers[name]) << name << " after step " << i;
    }
  }
  EXPECT_FALSE(SameBits(before, ValueOf(plain.get(), "w1")));
  ExpectNoFaults();
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
