// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/group_device.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_on_thread.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

using Member = GroupDevice<FakeDevice>;

class GroupDeviceTest : public ::testing::Test {
 protected:
  GroupDeviceTest()
      : groups_(NewFakeGroups(0, 2, &record_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0])) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1]));
  }

  Member* Device(int group) {
    return static_cast<Member*>(leader_->group_device(group));
  }

  // Row 1 of the variable "var", rows of one number, gathered on `group`.
  absl::Status Gather(int group, float* row) {
    NodeDef node;
    absl::Status status = NodeDefBuilder("gather", "ResourceGather")
                              .Input("var", 0, DT_RESOURCE)
                              .Input("indices", 0, DT_INT32)
                              .Attr("dtype", DT_FLOAT)
                              .Finalize(&node);
    if (!status.ok()) return status;
    std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, Device(group), cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    if (!status.ok()) return status;
    OpKernelContext::Params params;
    params.device = Device(group);
    params.op_kernel = kernel.get();
    params.resource_manager = Device(group)->resource_manager();
    Tensor handle(DT_RESOURCE, TensorShape({}));
    handle.scalar<ResourceHandle>()() =
        MakeResourceHandle(params.resource_manager->default_container(), "var",
                           *Device(group), TypeIndex::Make<Var>());
    Tensor index(DT_INT32, TensorShape({1}));
    index.flat<int>()(0) = 1;
    const TensorValue inputs[] = {TensorValue(&handle), TensorValue(&index)};
    const AllocatorAttributes output;
    params.inputs = inputs;
    params.output_attr_array = &output;
    OpKernelContext context(&params);
    Device(group)->Compute(kernel.get(), &context);
    if (context.status().ok()) {
      *row = context.mutable_output(0)->flat<float>()(0);
    }
    return context.status();
  }

  FakeContext contexts_[2];
  StreamRecord record_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
};

// A gather puts its variable in copy-on-read mode. A buffer that the variable
// shares with a constant has to be copied for that.
TEST_F(GroupDeviceTest, AGatherOfAnotherGroupCopiesOnTheLeadersStream) {
  Tensor constant(DT_FLOAT, TensorShape({2, 1}));
  constant.flat<float>()(0) = 3;
  constant.flat<float>()(1) = 4;
  auto* var = new Var(DT_FLOAT);
  *var->tensor() = constant;
  var->is_initialized = true;
  ResourceMgr* resources = Device(0)->resource_manager();
  ASSERT_TRUE(
      resources->Create(resources->default_container(), "var", var).ok());
  for (int i = 0; i < 2; ++i) {
    float row = 0;
    const absl::Status status = Gather(1, &row);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(row, 4);
  }
  EXPECT_TRUE(var->copy_on_read_mode.load());
  EXPECT_NE(var->tensor()->data(), constant.data());
  EXPECT_EQ(Device(0)->contexts(),
            std::vector<const DeviceContext*>{&contexts_[0]});
  EXPECT_TRUE(Device(1)->contexts().empty());
}

// TensorFlow syncs the visible device before it copies a result to the host. It
// must not wait for other clients' steps on other groups.
TEST_F(GroupDeviceTest, OnlyAnOpWaitsForOtherGroups) {
  ASSERT_TRUE(Device(0)->Sync().ok());
  EXPECT_EQ(Device(0)->syncs(), 1);
  EXPECT_EQ(Device(1)->syncs(), 0);
  {
    const GroupOnThread launching(groups_->group(0));
    ASSERT_TRUE(Device(0)->Sync().ok());
  }
  EXPECT_EQ(Device(0)->syncs(), 2);
  EXPECT_EQ(Device(1)->syncs(), 1);
  ASSERT_TRUE(Device(1)->Sync().ok());
  EXPECT_EQ(Device(0)->syncs(), 2);
}

// Holds of the leader's memory by ops on group 1.

// Set by the test: runs in place of the op's launch.
std::function<void(OpKernelContext*)>* OnCompute() {
  static auto* on_compute = new std::function<void(OpKernelContext*)>;
  return on_compute;
}
AsyncOpKernel::DoneCallback* DoneOfAsync() {
  static auto* done = new AsyncOpKernel::DoneCallback;
  return done;
}

REGISTER_OP("MultiStreamTestOp").Input("x: float").Output("y: float");
REGISTER_OP("MultiStreamTestAsyncOp").Input("x: float").Output("y: float");

class TestOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { (*OnCompute())(context); }
};

class TestAsyncOp : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    *DoneOfAsync() = std::move(done);
  }
};

REGISTER_OP("MultiStreamTestReadOp").Input("x: resource").Output("y: variant");
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestOp").Device(DEVICE_CPU), TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestReadOp").Device(DEVICE_CPU),
                        TestOp);
// TensorFlow's own kernel has no label.
REGISTER_KERNEL_BUILDER(
    Name("_XlaCompile").Device(DEVICE_CPU).Label("MultiStreamTest"), TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestAsyncOp").Device(DEVICE_CPU),
                        TestAsyncOp);

class ForeignMemoryTest : public ::testing::Test {
 protected:
  ForeignMemoryTest()
      : groups_(NewManualGroups(2, &record_, &streams_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0])),
        step_(std::make_shared<Step>(groups_.get(), groups_->group(1),
                                     /*changes_state=*/false)) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1]));
    x_ = Tensor(&memory_, DT_FLOAT, TensorShape({1}));
    data_ = x_.data();
    MemoryOwner::Get()->Add(data_, x_.TotalBytes(), groups_->group(0));
  }
  ~ForeignMemoryTest() override {
    // Of no group, as far as later tests may know.
    MemoryOwner::Get()->Add(data_, sizeof(float), nullptr);
  }

  Member* Device() { return static_cast<Member*>(leader_->group_device(1)); }
  ManualStreamGroup* stream() { return streams_[1]; }

  // An op of the step with x_ for its input.
  void Make(const std::string& op) {
    Make(NodeDefBuilder("op", op).Input("x", 0, DT_FLOAT), &x_);
  }
  void Make(const NodeDefBuilder& op, Tensor* input) {
    NodeDef node;
    absl::Status status = NodeDefBuilder(op).Finalize(&node);
    ASSERT_TRUE(status.ok()) << status;
    kernel_ = CreateOpKernel(DEVICE_CPU, Device(), cpu_allocator(), node,
                             TF_GRAPH_DEF_VERSION, &status);
    ASSERT_TRUE(status.ok()) << status;
    runner_ = StepRunner{step_, &kernels_, nullptr, nullptr, step_->group()};
    input_ = TensorValue(input);
    params_.device = Device();
    params_.resource_manager = Device()->resource_manager();
    params_.op_kernel = kernel_.get();
    params_.inputs = absl::MakeConstSpan(&input_, 1);
    params_.output_attr_array = &output_;
    params_.runner = &runner_;
    context_ = std::make_unique<OpKernelContext>(&params_);
  }
  // Like Make, for an op that reads a variable whose value is x_.
  void MakeReader(NodeDefBuilder op) {
    auto* var = new Var(DT_FLOAT);
    *var->tensor() = x_;
    var->is_initialized = true;
    ResourceMgr* resources = Device()->resource_manager();
    ASSERT_TRUE(
        resources->Create(resources->default_container(), "var", var).ok());
    var_ = var;
    handle_.scalar<ResourceHandle>()() =
        MakeResourceHandle(resources->default_container(), "var", *Device(),
                           TypeIndex::Make<Var>());
    Make(op, &handle_);
    kernels_.readers.insert(kernel_.get());
  }
  // Assigns another value, as the leader does.
  void Assign() {
    x_ = Tensor();
    *var_->tensor() = Tensor(DT_FLOAT, TensorShape({1}));
  }
  // As the executor does when the op is done.
  void DropInput() { x_ = Tensor(); }
  // Another thread of the step passes the byte limit.
  void LaunchMany() {
    Holds holds(step_->group(), step_.get());
    holds.Add(Tensor(DT_UINT8, TensorShape({StepHolds::kMostBytes + 1})));
  }
  void EndStep() {
    step_->Finish();
    step_->holds().ReleaseWhenCompleted(step_->group());
    stream()->Complete();
    EXPECT_EQ(stream()->used_too_late(), 0);
    EXPECT_FALSE(memory_.IsInUse(data_));
  }

  WatchedMemory memory_;
  FakeContext contexts_[2];
  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
  std::shared_ptr<Step> step_;
  Tensor x_;
  const void* data_;
  Tensor handle_{DT_RESOURCE, TensorShape({})};
  Var* var_ = nullptr;  // the resource manager's
  KernelTraits kernels_;
  std::function<void(std::function<void()>)> runner_;
  std::unique_ptr<OpKernel> kernel_;
  TensorValue input_;
  const AllocatorAttributes output_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> context_;
};

TEST_F(ForeignMemoryTest, AnOpsInputIsHeldFromBeforeItsLaunchUntilAfter) {
  *OnCompute() = [&](OpKernelContext* context) {
    // Otherwise the op might reuse the buffer for its output.
    EXPECT_FALSE(context->input(0).RefCountIsOne());
    LaunchMany();
    stream()->Use(&memory_, data_);
  };
  Make("MultiStreamTestOp");
  Device()->Compute(kernel_.get(), context_.get());
  DropInput();
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Complete();
  EndStep();
}

TEST_F(ForeignMemoryTest, AnAsynchronousOpsInputIsHeldUntilTheOpIsDone) {
  bool done = false;
  Make("MultiStreamTestAsyncOp");
  Device()->ComputeAsync(kernel_->AsAsync(), context_.get(),
                         [&done] { done = true; });
  EXPECT_FALSE(x_.RefCountIsOne());
  LaunchMany();
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Use(&memory_, data_);
  std::exchange(*DoneOfAsync(), nullptr)();
  EXPECT_TRUE(done);
  DropInput();
  stream()->Complete();
  EndStep();
}

TEST_F(ForeignMemoryTest, WhatIsCopiedIsHeldUntilTheStreamHasCopiedIt) {
  Device()->on_copy = [&](const void* from) {
    EXPECT_EQ(from, data_);
    EXPECT_EQ(stream()->callbacks(), 0);
    stream()->Use(&memory_, from);
  };
  Tensor copy(DT_FLOAT, TensorShape({1}));
  absl::Status copied = absl::UnknownError("not copied");
  Device()->CopyTensorInSameDevice(&x_, &copy, &contexts_[1],
                                   [&](const absl::Status& status) {
                                     copied = status;
                                     DropInput();
                                   });
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_TRUE(memory_.IsInUse(data_));
  stream()->Complete();
  EXPECT_EQ(stream()->used_too_late(), 0);
  EXPECT_FALSE(memory_.IsInUse(data_));
}

// _XlaRun uses the variable without having it as an input.
TEST_F(ForeignMemoryTest, AVariableThatACompiledClusterReadsIsHeldToTheEnd) {
  *OnCompute() = [](OpKernelContext*) {};
  NameAttrList cluster;
  cluster.set_name("cluster");
  MakeReader(NodeDefBuilder("op", "_XlaCompile")
                 .Input(std::vector<NodeDefBuilder::NodeOut>())
                 .Input(std::vector<NodeDefBuilder::NodeOut>())
                 .Input(std::vector<NodeDefBuilder::NodeOut>(
                     {{"var", 0, DT_RESOURCE}}))
                 .Attr("must_compile", false)
                 .Attr("function", cluster)
                 .Attr("_kernel", "MultiStreamTest"));
  Device()->Compute(kernel_.get(), context_.get());
  Assign();
  stream()->Use(&memory_, data_);
  EndStep();
}

// Ops that use the list's elements do not have them as inputs.
TEST_F(ForeignMemoryTest, AListThatIsReadFromAVariableIsHeldToTheEnd) {
  *OnCompute() = [this](OpKernelContext* context) {
    Tensor list(DT_VARIANT, TensorShape({1}));
    list.flat<Variant>()(0) = x_;
    context->set_output(0, list);
  };
  MakeReader(NodeDefBuilder("op", "MultiStreamTestReadOp")
                 .Input("var", 0, DT_RESOURCE));
  Device()->Compute(kernel_.get(), context_.get());
  context_.reset();  // with the outputs
  Assign();
  stream()->Use(&memory_, data_);
  EndStep();
}

// The copy's callback may let another group use the copy at once.
TEST_F(ForeignMemoryTest, OtherGroupsWaitForACopyOfTheLeaders) {
  Tensor copy(DT_FLOAT, TensorShape({1}));
  record_.Take();
  leader_->CopyTensorInSameDevice(
      &x_, &copy, &contexts_[0], [&](const absl::Status&) {
        groups_->OrderAfterLeader(groups_->group(1));
      });
  EXPECT_EQ(record_.Take(),
            std::vector<std::string>({"0 records", "1 waits for event of 0"}));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
