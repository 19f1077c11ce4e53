// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// With TF_SEGMENT_OWN_CONST=true, the environment of this target.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr int64_t kConstantBytes = 4 << 20;

Tensor Large(float value) {
  Tensor tensor(DT_FLOAT, TensorShape({1 << 20}));
  tensor.flat<float>().setConstant(value);
  return tensor;
}

// "sum:0" and "max:0" of x times a constant of kConstantBytes.
Scope GraphWith(float value) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto product = ops::Mul(root, ops::Const(root, Large(value)), x);
  ops::Sum(root.WithOpName("sum"), product, {0});
  ops::Max(root.WithOpName("max"), product, {0});
  return root;
}

class SegmentOwnConstTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    SessionOf(GraphWith(0));  // makes the devices
    before_ = BytesInUse(0);
  }

  // Enough steps for every group to have run one.
  void Run(Session* session, const std::string& fetch, float expected) {
    for (int i = 0; i < 8; ++i) {
      std::vector<Tensor> outputs;
      const absl::Status status =
          session->Run({{"x", Tensor(1.0f)}}, {fetch}, {}, &outputs);
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ(outputs[0].scalar<float>()(), expected);
    }
  }

  void ExpectConstants(int count) {
    EXPECT_TRUE(Eventually([&] {
      const int64_t bytes = BytesInUse(0) - before_;
      return bytes / kConstantBytes == count;
    })) << "there are "
        << static_cast<double>(BytesInUse(0) - before_) / kConstantBytes
        << ", not " << count;
  }

  int64_t before_ = 0;
};

TEST_F(SegmentOwnConstTest, SessionsShareConstantsOfEqualValue) {
  std::unique_ptr<Session> first = SessionOf(GraphWith(1));
  Run(first.get(), "sum:0", 1 << 20);
  ExpectConstants(1);
  std::unique_ptr<Session> second = SessionOf(GraphWith(1));
  Run(second.get(), "sum:0", 1 << 20);
  ExpectConstants(1);
  // The constant lives until its last session ends.
  first.reset();
  Run(second.get(), "sum:0", 1 << 20);
  ExpectConstants(1);
  second.reset();
  ExpectConstants(0);
}

TEST_F(SegmentOwnConstTest, ConstantsOfDifferentValueStayApart) {
  std::unique_ptr<Session> first = SessionOf(GraphWith(3));
  std::unique_ptr<Session> second = SessionOf(GraphWith(4));
  Run(first.get(), "max:0", 3);
  Run(second.get(), "max:0", 4);
  ExpectConstants(2);
  Run(first.get(), "max:0", 3);
}

TEST_F(SegmentOwnConstTest, FetchesAndEqualConstantsOfOneGraphShareThem) {
  Scope root = GraphWith(5);
  ops::Sum(root.WithOpName("both"),
           ops::Add(root, ops::Const(root.WithOpName("a"), Large(5)),
                    ops::Const(root.WithOpName("b"), Large(5))),
           {0});
  std::unique_ptr<Session> session = SessionOf(root);
  Run(session.get(), "sum:0", 5 << 20);
  ExpectConstants(1);
  Run(session.get(), "max:0", 5);
  ExpectConstants(1);
  Run(session.get(), "both:0", 10 << 20);
  ExpectConstants(1);
  session.reset();
  ExpectConstants(0);
}

}  // namespace
}  // namespace tensorflow::multistream
