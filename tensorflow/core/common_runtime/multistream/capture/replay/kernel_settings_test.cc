// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A recording is launched only under the kernel settings that it was made with.

#include "tensorflow/core/common_runtime/multistream/capture/replay/kernel_settings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {
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
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &y));
    y->scalar<float>()() = tensor_float_32_execution_enabled() ? 1 : 2;
  }
};
REGISTER_KERNEL_BUILDER(Name("Tanh")
                            .Device(DEVICE_CPU)
                            .TypeConstraint<float>("T")
                            .Label("calls_test"),
                        CallsTest);

class KernelSettingsTest : public ::testing::Test {
 protected:
  KernelSettingsTest() {
    Scope root = Scope::NewRootScope();
    auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    auto y = ops::Tanh(root.WithOpName("y").WithDevice("/device:GPU:0"), x);
    y.node()->AddAttr("_kernel", "calls_test");
    session_ = SessionOf(root);
  }
  ~KernelSettingsTest() override {
    WhenOpRuns() = nullptr;
    enable_tensor_float_32_execution(true);
    tsl::EnableOpDeterminism(false);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      std::vector<Tensor> results;
      const absl::Status status =
          session_->Run({{"x", Tensor(1.0f)}}, {"y"}, {}, &results);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // Runs all steps before the one that is recorded.
  void RunUpToRecording() { Run(CapturedSteps::kRunsBefore); }

  int64_t recordings() {
    return Total(&StreamGroupStats::recordings) - recordings_;
  }
  int64_t made() { return Total(&StreamGroupStats::recordings_made) - made_; }
  int64_t replayed() {
    return Total(&StreamGroupStats::steps_replayed) - replayed_;
  }

 private:
  const int64_t recordings_ = Total(&StreamGroupStats::recordings);
  const int64_t made_ = Total(&StreamGroupStats::recordings_made);
  const int64_t replayed_ = Total(&StreamGroupStats::steps_replayed);
  std::unique_ptr<Session> session_;
};

TEST_F(KernelSettingsTest, EachHasARecordingOfItsOwn) {
  RunUpToRecording();
  Run(1);
  EXPECT_EQ(recordings(), 1);
  EXPECT_EQ(replayed(), 1);
  int expected = 1;
  for (const auto& change : std::vector<std::function<void()>>{
           [] { enable_tensor_float_32_execution(false); },
           [] { tsl::EnableOpDeterminism(true); },
           [] { enable_tensor_float_32_execution(true); }}) {
    change();
    RunUpToRecording();
    EXPECT_EQ(replayed(), expected);
    Run(1);
    EXPECT_EQ(recordings(), ++expected);
    EXPECT_EQ(replayed(), expected);
  }
  // The first settings again: their recording is replayed at once.
  tsl::EnableOpDeterminism(false);
  Run(1);
  EXPECT_EQ(made(), expected);
  EXPECT_EQ(replayed(), expected + 1);
}

TEST_F(KernelSettingsTest, AChangeWhileAStepIsRecordedDropsTheRecording) {
  RunUpToRecording();
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

TEST_F(KernelSettingsTest, AChangeBeforeAReplayIsVerifiedIsNoFault) {
  RunUpToRecording();
  Run(1);
  const int64_t verified = Total(&StreamGroupStats::replays_verified);
  int runs = 0;  // of the op: in the replay, then in the step without capture
  WhenOpRuns() = [&runs] {
    if (++runs == 2) enable_tensor_float_32_execution(false);
  };
  Run(1);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(Total(&StreamGroupStats::replays_verified), verified);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
