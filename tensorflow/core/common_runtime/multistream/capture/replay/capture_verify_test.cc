// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// With TF_MULTI_STREAM_CAPTURE_VERIFY=3, a captured step that gives a wrong bit
// is an error.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"

namespace tensorflow {
namespace multistream {
namespace {

class CaptureVerifyTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Session> NewModel() {
    Scope root = Scope::NewRootScope();
    auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    Scope gpu = root.WithDevice("/device:GPU:0");
    auto y = ops::Tanh(gpu.WithOpName("y"), x);
    ops::Shape(gpu.WithOpName("shape"), y);
    return SessionOf(root);
  }

  static Tensor Input() {
    Tensor x(DT_FLOAT, {4, 3});
    x.flat<float>().setConstant(0.5f);
    return x;
  }

  absl::Status Run() {
    std::vector<Tensor> results;
    TF_RETURN_IF_ERROR(
        session_->Run({{"x", Input()}}, {"y", "shape"}, {}, &results));
    EXPECT_FLOAT_EQ(results[0].flat<float>()(11), 0.46211716f);
    EXPECT_EQ(results[1].flat<int32>()(0), 4);
    return absl::OkStatus();
  }

  const std::unique_ptr<Session> session_ = NewModel();
};

TEST_F(CaptureVerifyTest, EqualResultsAreTheResults) {
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(Run().ok());
  EXPECT_GT(Total(&StreamGroupStats::steps_replayed), 40);
  // Every third step has run without capture as well.
  EXPECT_GT(Total(&StreamGroupStats::steps_started), 75);
  EXPECT_EQ(Total(&StreamGroupStats::steps_running), 0);
}

TEST_F(CaptureVerifyTest, AWrongBitIsAnErrorThatNamesTheResult) {
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Run().ok());
  ASSERT_TRUE(InjectTestFault(TestFault::kSpoilReplay, 2));
  int wrong = 0;
  for (int i = 0; i < 6; ++i) {
    std::vector<Tensor> results;
    const absl::Status status =
        session_->Run({{"x", Input()}}, {"y", "shape"}, {}, &results);
    if (status.ok()) continue;
    ++wrong;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "TF_MULTI_STREAM_CAPTURE_VERIFY"))
        << status;
  }
  EXPECT_EQ(wrong, 2);  // every third of six is compared
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Run().ok());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
