// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

// The status of the next op of a test.
absl::Status* NextStatus() {
  static auto* status = new absl::Status;
  return status;
}
int runs = 0;

class EndsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    ++runs;
    context->SetStatus(*NextStatus());
  }
};

REGISTER_OP("MultiStreamTestEnds");
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestEnds").Device(DEVICE_CPU), EndsOp);

class RecordingDeviceTest : public ::testing::Test {
 protected:
  using Uses = RecordingDevice<FakeDevice>::Uses;

  RecordingDeviceTest() {
    *NextStatus() = absl::OkStatus();
    runs = 0;
  }

  absl::Status Run() {
    NodeDef node;
    absl::Status status =
        NodeDefBuilder("op", "MultiStreamTestEnds").Finalize(&node);
    const std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, &device_, cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    if (!status.ok()) return status;
    OpKernelContext::Params params;
    params.device = &device_;
    params.resource_manager = device_.resource_manager();
    params.op_kernel = kernel.get();
    OpKernelContext context(&params);
    device_.Compute(kernel.get(), &context);
    return context.status();
  }

  StreamRecord record_;
  FakeStreamGroup group_{0, 0, &record_};
  FakeContext context_;
  RecordingDevice<FakeDevice> device_{&group_, &context_};
  RecordingMemory memory_{cpu_allocator(), cpu_allocator()};
};

// TensorFlow's kernels abort the process if a launch fails, as after an op that
// has ended the capture.
TEST_F(RecordingDeviceTest, NoOpRunsAfterOneThatFailed) {
  Uses recorded(&device_, &memory_);
  EXPECT_TRUE(Run().ok());
  *NextStatus() = absl::InternalError("it waits for the GPU");
  EXPECT_TRUE(absl::IsInternal(Run()));
  *NextStatus() = absl::OkStatus();
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_TRUE(absl::IsCancelled(Run()));
  EXPECT_EQ(runs, 2);
}

TEST_F(RecordingDeviceTest, TheNextRecordingBeginsAnew) {
  {
    Uses recorded(&device_, &memory_);
    *NextStatus() = absl::InternalError("it waits for the GPU");
    EXPECT_FALSE(Run().ok());
  }
  *NextStatus() = absl::OkStatus();
  Uses recorded(&device_, &memory_);
  EXPECT_TRUE(Run().ok());
}

TEST_F(RecordingDeviceTest, WithoutARecordingAnOpMayFail) {
  *NextStatus() = absl::InternalError("any");
  EXPECT_TRUE(absl::IsInternal(Run()));
  *NextStatus() = absl::OkStatus();
  EXPECT_TRUE(Run().ok());
}

TEST_F(RecordingDeviceTest, AnOpAfterWhichTheCheckFailsIsNamed) {
  absl::Status check;
  {
    Uses recorded(&device_, &memory_);
    recorded.CheckAfterOps([&check] { return check; });
    EXPECT_TRUE(Run().ok());
    check = absl::InternalError("the capture has ended");
    const absl::Status status = Run();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StrContains(
        status.message(),
        "MultiStreamTestEnds 'op' cannot be recorded: the capture has ended"))
        << status;
    EXPECT_EQ(recorded.failure(), status);
    check = absl::OkStatus();
    EXPECT_TRUE(absl::IsCancelled(Run()));
    EXPECT_EQ(recorded.failure(), status);
    EXPECT_EQ(runs, 2);
  }
  // A failure belongs to one recording: the next recording starts without it.
  check = absl::InternalError("the capture has ended");
  Uses recorded(&device_, &memory_);
  EXPECT_TRUE(Run().ok());
}

TEST_F(RecordingDeviceTest, TheCheckKnowsBetterThanAnOpThatFailed) {
  Uses recorded(&device_, &memory_);
  recorded.CheckAfterOps([] { return absl::InternalError("it has ended"); });
  *NextStatus() = absl::InternalError("not permitted");
  EXPECT_EQ(Run(), *NextStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(recorded.failure()));
  EXPECT_TRUE(absl::StrContains(recorded.failure().message(), "it has ended"));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
