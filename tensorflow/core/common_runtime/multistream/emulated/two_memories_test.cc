// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/multistream/base/device_context.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {
namespace {

// An op that says where its input is, 1 for the GPU's memory; on a GPU its
// input is on the host.
REGISTER_OP("IsOnGpu")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(shape_inference::ScalarShape);

class IsOnGpu : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, TensorShape({}), &y));
    const void* data = context->input(0).data();
    y->scalar<float>()() = MemoryOwner::Get()->Find(data) != nullptr;
  }
};
REGISTER_KERNEL_BUILDER(Name("IsOnGpu").Device(DEVICE_CPU), IsOnGpu);
REGISTER_KERNEL_BUILDER(Name("IsOnGpu").Device(DEVICE_GPU).HostMemory("x"),
                        IsOnGpu);

// An op that gives its input, although that is on the GPU and its output is to
// be on the host.
REGISTER_OP("ForgetsToCopy")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(shape_inference::UnchangedShape);

class ForgetsToCopy : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->set_output(0, context->input(0));
  }
};
REGISTER_KERNEL_BUILDER(Name("ForgetsToCopy").Device(DEVICE_CPU),
                        ForgetsToCopy);
REGISTER_KERNEL_BUILDER(
    Name("ForgetsToCopy").Device(DEVICE_GPU).HostMemory("y"), ForgetsToCopy);

Output AddOp(const Scope& scope, const char* op, const Output& x) {
  Node* node = nullptr;
  TF_CHECK_OK(NodeBuilder(scope.GetUniqueNameForOp(op), op)
                  .Input(x.node(), x.index())
                  .Device("/device:GPU:0")
                  .Finalize(scope.graph(), &node));
  return Output(node);
}

class TwoMemoriesTest : public EmulatedRuntimeTest {
 protected:
  TwoMemoriesTest()
      : root_(Scope::NewRootScope().WithDevice("/device:GPU:0")),
        x_(ops::AddV2(root_, ops::Placeholder(root_.WithOpName("x"), DT_FLOAT),
                      ops::Const(root_, 1.0f))) {}

  absl::Status Run(std::vector<Tensor>* outputs) {
    Tensor x(DT_FLOAT, TensorShape({256}));
    x.flat<float>().setConstant(1.0f);
    return SessionOf(root_)->Run({{"x", x}}, {"y"}, {}, outputs);
  }

  Scope root_;
  Output x_;  // is made on the GPU
};

TEST_F(TwoMemoriesTest, AnInputOnTheHostIsACopy) {
  ops::Identity(root_.WithOpName("y"), AddOp(root_, "IsOnGpu", x_));
  std::vector<Tensor> outputs;
  ASSERT_TRUE(Run(&outputs).ok());
  EXPECT_EQ(outputs[0].scalar<float>()(), 0.0f);
}

TEST_F(TwoMemoriesTest, MemoryOfTheGpuIsNotReadOnTheHost) {
  const Output y = AddOp(root_, "ForgetsToCopy", x_);
  ops::Identity(root_.WithOpName("y"), AddOp(root_, "IsOnGpu", y));
  std::vector<Tensor> outputs;
  const absl::Status status = Run(&outputs);
  EXPECT_TRUE(absl::StrContains(
      status.message(), "would read its input 0 (float[256]) on the host"))
      << status;
}

TEST_F(TwoMemoriesTest, ACopyNeedsTheGpusContext) {
  const std::unique_ptr<Session> session = SessionOf(root_);
  const DeviceMgr* devices = nullptr;
  Device *gpu = nullptr, *cpu = nullptr;
  ASSERT_TRUE(session->LocalDeviceManager(&devices).ok());
  ASSERT_TRUE(devices->LookupDevice("/device:GPU:0", &gpu).ok());
  ASSERT_TRUE(devices->LookupDevice("/device:CPU:0", &cpu).ok());
  ASSERT_NE(ContextOf(gpu), nullptr);
  EXPECT_EQ(ContextOf(cpu), nullptr);

  Tensor on_gpu(gpu->GetAllocator({}), DT_FLOAT, TensorShape({4}));
  on_gpu.flat<float>().setConstant(3.0f);
  for (DeviceContext* context : {ContextOf(gpu), (DeviceContext*)nullptr}) {
    Tensor copy(DT_FLOAT, TensorShape({4}));
    copy.flat<float>().setZero();
    absl::Status status = absl::UnknownError("not done");
    CopyTensor::ViaDMA("copy", context, nullptr, gpu, cpu, {}, {}, &on_gpu,
                       &copy, 0,
                       [&status](const absl::Status& s) { status = s; });
    EXPECT_EQ(status.ok(), context != nullptr) << status;
    EXPECT_NE(copy.data(), on_gpu.data());
    EXPECT_EQ(copy.flat<float>()(3), context != nullptr ? 3.0f : 0.0f);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
