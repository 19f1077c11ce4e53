// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

// How many kernels of CountedIdentity have been made, and how many exist.
std::atomic<int> kernels_made{0}, kernels_alive{0};

REGISTER_OP("CountedIdentity")
    .Input("x: float")
    .Output("y: float")
    .SetShapeFn(shape_inference::UnchangedShape);

class CountedIdentity : public OpKernel {
 public:
  explicit CountedIdentity(OpKernelConstruction* context) : OpKernel(context) {
    ++kernels_made;
    ++kernels_alive;
  }
  ~CountedIdentity() override { --kernels_alive; }
  void Compute(OpKernelContext* context) override {
    context->set_output(0, context->input(0));
  }
};
REGISTER_KERNEL_BUILDER(Name("CountedIdentity").Device(DEVICE_CPU),
                        CountedIdentity);

TEST_F(EmulatedRuntimeTest, MemoryOfAnotherGroupIsHeldUntilTheStreamPassed) {
  const std::unique_ptr<Session> session = SessionOf(AVariable());
  // How many values of the variable exist.
  const auto values = [before = BytesInUse(0)] {
    return (BytesInUse(0) - before) / kVariableBytes;
  };
  Set(session.get(), 1);
  ASSERT_TRUE(Eventually([&] { return values() == 1; })) << values();

  // A read on every group; the streams of all but the leader are slow.
  for (int i = 1; i < kGroups; ++i) Group(i)->Pause();
  for (int i = 0; i < kGroups; ++i) EXPECT_EQ(Sum(session.get()), 1 << 18);
  Set(session.get(), 2);
  // Wait until the memory that the change itself frees is freed.
  absl::Notification passed;
  Group(0)->ThenExecute([&passed] { passed.Notify(); });
  passed.WaitForNotification();
  // Both the old value, which the paused streams have yet to read, and the new.
  EXPECT_GE(values(), 2);

  // One group's completion does not free it.
  Group(1)->Resume();
  EXPECT_TRUE(Group(1)->Synchronize().ok());
  EXPECT_GE(values(), 2);

  for (int i = 2; i < kGroups; ++i) Group(i)->Resume();
  EXPECT_TRUE(Eventually([&] { return values() < 2; })) << values();
}

TEST_F(EmulatedRuntimeTest, AListGivenToAnEagerOpIsHeldUntilTheStreamPassed) {
  std::vector<std::unique_ptr<Device>> devices;
  ASSERT_TRUE(DeviceFactory::GetFactory("GPU")
                  ->CreateDevices(PlainOptions(),
                                  "/job:localhost/replica:0/task:0", &devices)
                  .ok());
  Device* leader = devices.at(0).get();
  NodeDef node;
  ASSERT_TRUE(NodeDefBuilder("identity", "Identity")
                  .Input("list", 0, DT_VARIANT)
                  .Finalize(&node)
                  .ok());
  absl::Status status;
  const std::unique_ptr<OpKernel> kernel =
      CreateOpKernel(DEVICE_CPU, leader, leader->GetAllocator({}), node,
                     TF_GRAPH_DEF_VERSION, &status);
  ASSERT_TRUE(status.ok()) << status;

  const int64_t before = BytesInUse(1);
  constexpr int64_t kBytes = 1 << 18;
  Group(0)->Pause();
  {
    Tensor list(DT_VARIANT, TensorShape({}));
    list.scalar<Variant>()() =
        Tensor(Group(1)->allocator(), DT_FLOAT,
               TensorShape({kBytes / static_cast<int64_t>(sizeof(float))}));
    TensorValue input(&list);
    AllocatorAttributes attributes;
    OpKernelContext::Params params;
    params.device = leader;
    params.op_kernel = kernel.get();
    params.inputs = absl::MakeConstSpan(&input, 1);
    params.output_attr_array = &attributes;
    OpKernelContext context(&params);
    leader->Compute(kernel.get(), &context);
    EXPECT_TRUE(context.status().ok()) << context.status();
    delete context.release_output(0).tensor;
  }
  // The memory is not freed yet, even though its own stream has completed.
  EXPECT_TRUE(Group(1)->Synchronize().ok());
  EXPECT_GE(BytesInUse(1), before + kBytes);
  Group(0)->Resume();
  EXPECT_TRUE(Eventually([&] { return BytesInUse(1) == before; }));
}

TEST_F(EmulatedRuntimeTest, ConstantsExistOnceWithTheLeader) {
  constexpr int64_t kBytes = 4 << 20;
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Tensor large(DT_FLOAT, TensorShape({1 << 20}));
  large.flat<float>().setConstant(1.0f);
  ops::Sum(root.WithOpName("y"), ops::Mul(root, ops::Const(root, large), x),
           {0});
  std::vector<int64_t> before;
  for (int i = 0; i < kGroups; ++i) {
    ASSERT_TRUE(Group(i)->Synchronize().ok());
    before.push_back(BytesInUse(i));
  }
  for (int i = 1; i < kGroups; ++i) EXPECT_EQ(before[i], 0) << i;
  {
    const std::unique_ptr<Session> session = SessionOf(root);
    EXPECT_EQ(Started([&] {
                for (int i = 0; i < 3 * kGroups; ++i) {
                  const auto y =
                      RunStep(session.get(), {{"x", Tensor(2.0f)}}, {"y:0"});
                  EXPECT_EQ(y.at(0).scalar<float>()(), 2 << 20);
                }
              }),
              std::vector<int64_t>(kGroups, 3));
    EXPECT_TRUE(Eventually([&] {
      return BytesInUse(1) + BytesInUse(2) + BytesInUse(3) == 0 &&
             BytesInUse(0) < before[0] + 2 * kBytes;
    }));
    EXPECT_GE(BytesInUse(0), before[0] + kBytes);
  }
  EXPECT_TRUE(Eventually([&] { return BytesInUse(0) <= before[0]; }))
      << BytesInUse(0) - before[0];
}

TEST_F(EmulatedRuntimeTest, KernelsOfOtherLibrariesExistOnceForEachGroup) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Node* node = nullptr;
  ASSERT_TRUE(NodeBuilder("y", "CountedIdentity")
                  .Input(x.node())
                  .Device("/device:GPU:0")
                  .Finalize(root.graph(), &node)
                  .ok());
  {
    const std::unique_ptr<Session> session = SessionOf(root);
    for (int i = 0; i < 3 * kGroups; ++i) {
      RunStep(session.get(), {{"x", Tensor(2.0f)}}, {"y:0"});
    }
    EXPECT_EQ(kernels_made, kGroups);
    EXPECT_EQ(kernels_alive, kGroups);
  }
  EXPECT_EQ(kernels_alive, 0);
}

}  // namespace
}  // namespace tensorflow::multistream
