// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Training whose branches run on groups gives what one group gives.

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
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_fixture.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_util.h"

namespace tensorflow {
namespace multistream {
namespace {

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

const std::vector<std::string>& TrainedVariables() {
  static const auto* names =
      new std::vector<std::string>{"w0", "w1", "w2", "w3", "momentum"};
  return *names;
}

// The variable's value, in its buffer.
Tensor ValueOf(Session* session, const std::string& variable) {
  const core::RefCountPtr<Var> found = FindVariable(session, variable);
  if (found == nullptr) return Tensor();
  mutex_lock lock(*found->mu());
  return *found->tensor();
}

std::unique_ptr<Session> StartedTraining(bool grouped) {
  auto session = GroupedSession(Training(grouped));
  std::vector<std::string> inits;
  for (const std::string& name : TrainedVariables()) {
    inits.push_back("init_" + name);
  }
  const absl::Status status = session->Run({}, {}, inits, nullptr);
  EXPECT_TRUE(status.ok()) << status;
  return session;
}

TEST_F(NodeLevelTest, TrainingInBranchesGivesWhatOneGroupGives) {
  auto plain = StartedTraining(false);
  auto grouped = StartedTraining(true);
  const Tensor before = tensor::DeepCopy(ValueOf(plain.get(), "w1"));
  for (int i = 0; i < 10; ++i) {
    const Tensor x = Square(32, 7 + i);
    std::vector<Tensor> wanted, got;
    ASSERT_TRUE(plain->Run({{"x:0", x}}, {"loss:0"}, {"train"}, &wanted).ok());
    ASSERT_TRUE(grouped->Run({{"x:0", x}}, {"loss:0"}, {"train"}, &got).ok());
    EXPECT_TRUE(SameBits(wanted[0], got[0])) << i;
    for (const std::string& name : TrainedVariables()) {
      EXPECT_TRUE(
          SameBits(ValueOf(plain.get(), name), ValueOf(grouped.get(), name)))
          << name << " after step " << i;
    }
  }
  EXPECT_FALSE(SameBits(before, ValueOf(plain.get(), "w1")));
  EXPECT_EQ(NewReports(), 0);
  EXPECT_EQ(NewViolations(), 0);
}

// Other groups' holds of a variable, which last until the step ends, are
// released before the change.
TEST_F(NodeLevelTest, TrainingChangesVariablesInPlace) {
  auto session = StartedTraining(true);
  auto train = [&](int i) {
    return session->Run({{"x:0", Square(32, i)}}, {}, {"train"}, nullptr);
  };
  // Before the first step, variables may share buffers with their constants.
  ASSERT_TRUE(train(0).ok());
  std::map<std::string, const void*> buffers;
  for (const std::string& name : TrainedVariables()) {
    buffers[name] = ValueOf(session.get(), name).data();
  }
  for (int i = 1; i <= 10; ++i) {
    ASSERT_TRUE(train(i).ok());
    for (const std::string& name : TrainedVariables()) {
      EXPECT_EQ(ValueOf(session.get(), name).data(), buffers[name])
          << name << " after step " << i;
    }
  }
  EXPECT_EQ(NewReports(), 0);
  EXPECT_EQ(NewViolations(), 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
