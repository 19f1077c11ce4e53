// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// With TF_MULTI_STREAM_CAPTURE_VERIFY=3, a captured step that gives a wrong bit
// is an error. A change of a kernel setting at any time leads to none.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow::multistream {
namespace {

// A function that the test op calls when it runs. The op's result depends on
// TF32.
std::function<void()>& WhenOpRuns() {
  static auto* when_op_runs = new std::function<void()>;
  return *when_op_runs;
}

class CallsTest : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    if (WhenOpRuns() != nullptr) WhenOpRuns()();
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, context->input(0).shape(), &y));
    y->flat<float>().setConstant(tensor_float_32_execution_enabled() ? 1 : 2);
  }
};
REGISTER_KERNEL_BUILDER(Name("Tanh")
                            .Device(DEVICE_CPU)
                            .TypeConstraint<float>("T")
                            .Label("calls_test"),
                        CallsTest);

class CaptureVerifyTest : public ::testing::Test {
 protected:
  CaptureVerifyTest() {
    Scope root = Scope::NewRootScope();
    auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    Scope gpu = root.WithDevice("/device:GPU:0");
    auto y = ops::Tanh(gpu.WithOpName("y"), x);
    y.node()->AddAttr("_kernel", "calls_test");
    ops::Shape(gpu.WithOpName("shape"), y);
    session_ = SessionOf(root);
  }
  ~CaptureVerifyTest() override {
    WhenOpRuns() = nullptr;
    enable_tensor_float_32_execution(true);
  }

  absl::Status Run() {
    std::vector<Tensor> results;
    TF_RETURN_IF_ERROR(session_->Run({{"x", Tensor(DT_FLOAT, {4, 3})}},
                                     {"y", "shape"}, {}, &results));
    EXPECT_EQ(results[1].flat<int32>()(0), 4);
    return absl::OkStatus();
  }
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      const absl::Status status = Run();
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t recordings() {
    return Total(&StreamGroupStats::recordings) - recordings_;
  }
  int64_t replayed() {
    return Total(&StreamGroupStats::steps_replayed) - replayed_;
  }
  int64_t verified() {
    return Total(&StreamGroupStats::replays_verified) - verified_;
  }

 private:
  const int64_t recordings_ = Total(&StreamGroupStats::recordings);
  const int64_t replayed_ = Total(&StreamGroupStats::steps_replayed);
  const int64_t verified_ = Total(&StreamGroupStats::replays_verified);
  std::unique_ptr<Session> session_;
};

TEST_F(CaptureVerifyTest, EveryThirdStepRunsWithoutCaptureAsWell) {
  const int64_t started = Total(&StreamGroupStats::steps_started);
  Run(CapturedSteps::kRunsBefore + 60);
  EXPECT_EQ(replayed(), 60);
  EXPECT_EQ(verified(), 20);
  EXPECT_EQ(Total(&StreamGroupStats::steps_started) - started,
            CapturedSteps::kRunsBefore + 80);
  EXPECT_EQ(Total(&StreamGroupStats::steps_running), 0);
}

TEST_F(CaptureVerifyTest, AWrongBitIsAnErrorThatNamesTheResult) {
  Run(30);
  ASSERT_TRUE(InjectTestFault(TestFault::kSpoilReplay, 2));
  int wrong = 0;
  for (int i = 0; i < 6; ++i) {
    const absl::Status status = Run();
    if (status.ok()) continue;
    ++wrong;
    EXPECT_TRUE(
        absl::StrContains(status.message(), "TF_MULTI_STREAM_CAPTURE_VERIFY"))
        << status;
  }
  EXPECT_EQ(wrong, 2);  // every third of six is compared
  Run(30);
}

TEST_F(CaptureVerifyTest,
       ASettingChangedWhileAStepIsRecordedDropsTheRecording) {
  Run(CapturedSteps::kRunsBefore);
  WhenOpRuns() = [] { enable_tensor_float_32_execution(false); };
  Run(1);
  WhenOpRuns() = nullptr;
  EXPECT_EQ(recordings(), 0);
  EXPECT_EQ(replayed(), 0);
  // Under the earlier settings a recording is made again.
  enable_tensor_float_32_execution(true);
  Run(1);
  EXPECT_EQ(recordings(), 1);
  EXPECT_EQ(replayed(), 1);
}

TEST_F(CaptureVerifyTest, ASettingChangedBeforeAReplayIsVerifiedIsNoFault) {
  Run(CapturedSteps::kRunsBefore + 3);
  EXPECT_EQ(verified(), 1);
  int runs = 0;  // of the op: in the replay, then in the step without capture
  WhenOpRuns() = [&runs] {
    if (++runs == 2) enable_tensor_float_32_execution(false);
  };
  Run(1);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(verified(), 1);
}

}  // namespace
}  // namespace tensorflow::multistream
