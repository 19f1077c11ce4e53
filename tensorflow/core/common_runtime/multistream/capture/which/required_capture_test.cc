// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// With TF_MULTI_STREAM_CAPTURE=require, a step that cannot be captured fails
// with an error that names the op.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST(RequiredCaptureTest, TheErrorNamesTheFirstOpInTheWay) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Scope gpu = root.WithDevice("/device:GPU:0");
  ops::Add(gpu.WithOpName("y"), x,
           ops::RandomUniform(gpu.WithOpName("noise"), {4}, DT_FLOAT));
  const std::unique_ptr<Session> session = SessionOf(root);
  std::vector<Tensor> results;
  const absl::Status status =
      session->Run({{"x", Tensor(DT_FLOAT, {4})}}, {"y"}, {}, &results);
  EXPECT_TRUE(
      absl::StrContains(status.message(), "TF_MULTI_STREAM_CAPTURE=require"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "RandomUniform 'noise'"))
      << status;
}

TEST(RequiredCaptureTest, WhatCanBeCapturedIs) {
  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Tanh(root.WithOpName("y").WithDevice("/device:GPU:0"), x);
  const std::unique_ptr<Session> session = SessionOf(root);
  std::vector<Tensor> results;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(
        session->Run({{"x", Tensor(DT_FLOAT, {4})}}, {"y"}, {}, &results).ok());
  }
  EXPECT_GT(Total(&StreamGroupStats::steps_replayed), 0);
}

// Initializers and training steps need not be captured.
TEST(RequiredCaptureTest, StepsThatChangeVariablesRunAsAlways) {
  Scope root = Scope::NewRootScope();
  Scope gpu = root.WithDevice("/device:GPU:0");
  auto handle = ops::VarHandleOp(gpu, DT_FLOAT, {2});
  ops::AssignVariableOp(gpu.WithOpName("init"), handle,
                        ops::Const(gpu, {1.0f, 2.0f}));
  const std::unique_ptr<Session> session = SessionOf(root);
  EXPECT_TRUE(session->Run({}, {}, {"init"}, nullptr).ok());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
