// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Are ops that change a variable kept out while ops that read or change it are
// launched, and no longer than that?

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

using Member = GroupDevice<FakeDevice>;

// Long enough for a thread that no lock keeps out.
constexpr absl::Duration kBriefly = absl::Milliseconds(100);
constexpr absl::Duration kForEver = absl::Seconds(60);

REGISTER_OP("MultiStreamStateOp").Input("x: T").Attr("T: type");
REGISTER_OP("MultiStreamStateRefOp").Input("x: Ref(T)").Attr("T: type");

// Set by the test: what the next synchronous op does.
std::function<void()>* OnCompute() {
  static auto* on_compute = new std::function<void()>;
  return on_compute;
}

class NowKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {
    const auto once = std::exchange(*OnCompute(), nullptr);
    if (once) once();
  }
};

class LaterKernel : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext*, DoneCallback done) override {
    finish = std::move(done);
  }
  DoneCallback finish;
};

REGISTER_KERNEL_BUILDER(Name("MultiStreamStateOp").Device(DEVICE_CPU),
                        NowKernel);
REGISTER_KERNEL_BUILDER(Name("MultiStreamStateRefOp").Device(DEVICE_CPU),
                        NowKernel);
REGISTER_KERNEL_BUILDER(
    Name("MultiStreamStateOp").Device(DEVICE_CPU).Label("Later"), LaterKernel);
REGISTER_KERNEL_BUILDER(
    Name("MultiStreamStateRefOp").Device(DEVICE_CPU).Label("Later"),
    LaterKernel);

// An op on a device of the groups, with one input.
class Op {
 public:
  // `step`: the op's step, or nullptr.
  Op(Member* device, const std::string& type, const std::string& label,
     DataType dtype, TensorValue input, std::shared_ptr<Step> step,
     bool is_reader)
      : device_(device), input_(input) {
    NodeDef node;
    NodeDefBuilder builder("op", type);
    builder.Input("x", 0, input.is_ref() ? MakeRefType(dtype) : dtype);
    if (!label.empty()) builder.Attr("_kernel", label);
    absl::Status status = builder.Finalize(&node);
    EXPECT_TRUE(status.ok()) << status;
    kernel_ = CreateOpKernel(DEVICE_CPU, device, cpu_allocator(), node,
                             TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    if (is_reader) traits_.readers.insert(kernel_.get());
    params_.device = device;
    params_.resource_manager = device->resource_manager();
    params_.op_kernel = kernel_.get();
    params_.inputs = absl::MakeConstSpan(&input_, 1);
    if (step != nullptr) {
      StreamGroup* group = step->group();
      runner_ = StepRunner{std::move(step), &traits_, nullptr, nullptr, group};
      params_.runner = &runner_;
    }
    context_ = std::make_unique<OpKernelContext>(&params_);
  }

  void Compute() { device_->Compute(kernel_.get(), context_.get()); }
  void Begin() {
    device_->ComputeAsync(kernel_->AsAsync(), context_.get(), [] {});
  }
  void Finish() { static_cast<LaterKernel*>(kernel_.get())->finish(); }

 private:
  Member* const device_;
  TensorValue input_;
  KernelTraits traits_;
  std::function<void(std::function<void()>)> runner_;
  std::unique_ptr<OpKernel> kernel_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> context_;
};

class OpStateTest : public ::testing::Test {
 protected:
  OpStateTest()
      : groups_(NewFakeGroups(0, 2, &record_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0])),
        step_(std::make_shared<Step>(groups_.get(), groups_->group(1),
                                     /*changes_state=*/false)) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1]));
    ResourceMgr* resources = leader_->resource_manager();
    EXPECT_TRUE(
        resources
            ->Create(resources->default_container(), "var", new Var(DT_FLOAT))
            .ok());
    handle_.scalar<ResourceHandle>()() =
        MakeResourceHandle(resources->default_container(), "var", *leader_,
                           TypeIndex::Make<Var>());
  }

  // On the leader, outside any step.
  Op Writer(const std::string& label = "") {
    return Op(leader_.get(), "MultiStreamStateOp", label, DT_RESOURCE,
              TensorValue(&handle_), nullptr, false);
  }
  Op ReferenceWriter() {
    return Op(leader_.get(), "MultiStreamStateRefOp", "", DT_FLOAT,
              TensorValue(&mu_, &reference_), nullptr, false);
  }
  // In a step on group 1.
  Op Reader(const std::string& label = "") {
    return Op(Hidden(), "MultiStreamStateOp", label, DT_RESOURCE,
              TensorValue(&handle_), step_, true);
  }

  Member* Hidden() { return static_cast<Member*>(leader_->group_device(1)); }

  // Whether `op` is kept out until `let_in` has been called.
  bool WaitsFor(Op* op, const std::function<void()>& let_in) {
    absl::Notification computed;
    std::thread thread([&] {
      op->Compute();
      computed.Notify();
    });
    const bool waits = !computed.WaitForNotificationWithTimeout(kBriefly);
    let_in();
    thread.join();
    return waits;
  }
  // Whether `op` is launched in the middle of the launch of `other`.
  bool RunsBeside(Op* op, Op* other) {
    absl::Notification computed;
    std::thread thread;
    bool ran = false;
    *OnCompute() = [&] {
      thread = std::thread([&] {
        op->Compute();
        computed.Notify();
      });
      ran = computed.WaitForNotificationWithTimeout(kForEver);
    };
    other->Compute();
    thread.join();
    return ran;
  }

  FakeContext contexts_[2];
  StreamRecord record_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
  std::shared_ptr<Step> step_;
  Tensor handle_{DT_RESOURCE, TensorShape({})};
  mutex mu_;
  Tensor reference_{DT_FLOAT, TensorShape({1})};
};

// An asynchronous op may enqueue work until it is done.
TEST_F(OpStateTest, AChangeWaitsForAnAsynchronousReadToBeDone) {
  Op reader = Reader("Later"), writer = Writer();
  reader.Begin();
  record_.Take();
  EXPECT_TRUE(WaitsFor(&writer, [&] {
    EXPECT_EQ(record_.Take(), std::vector<std::string>());
    reader.Finish();
  }));
  EXPECT_EQ(record_.Take(), std::vector<std::string>({"0 waits for 1"}));
}

TEST_F(OpStateTest, AReadWaitsForAnAsynchronousChangeToBeDone) {
  Op writer = Writer("Later"), reader = Reader();
  writer.Begin();
  record_.Take();
  EXPECT_TRUE(WaitsFor(&reader, [&] {
    EXPECT_EQ(record_.Take(), std::vector<std::string>());
    writer.Finish();
  }));
  EXPECT_EQ(record_.Take(),
            std::vector<std::string>({"0 records", "1 waits for event of 0"}));
}

// A dequeue op waits for an enqueue op, whose inputs the reader may have to
// make first.
TEST_F(OpStateTest, WhatTakesFromAQueueKeepsNobodyOut) {
  Tensor name(DT_STRING, TensorShape({2}));
  Op take(leader_.get(), "MultiStreamStateRefOp", "Later", DT_STRING,
          TensorValue(&mu_, &name), nullptr, false);
  Tensor alias = reference_;
  Op reader(Hidden(), "MultiStreamStateOp", "", DT_FLOAT, TensorValue(&alias),
            step_, false);
  step_->NoteReferences();
  take.Begin();
  EXPECT_FALSE(WaitsFor(&reader, [&] { take.Finish(); }));
}

// Any input may be an alias of the reference, whatever the op's graph shows.
TEST_F(OpStateTest, EveryOpOfAStepWithReferencesWaitsForTheirChanges) {
  Tensor alias = reference_;
  Op reader(Hidden(), "MultiStreamStateOp", "Later", DT_FLOAT,
            TensorValue(&alias), step_, false);
  Op writer = ReferenceWriter();
  step_->NoteReferences();
  reader.Begin();
  EXPECT_TRUE(WaitsFor(&writer, [&] { reader.Finish(); }));
}

TEST_F(OpStateTest, StepsWithoutReferencesDoNotWaitForTheirChanges) {
  Op reader = Reader(), writer = ReferenceWriter();
  EXPECT_TRUE(RunsBeside(&reader, &writer));
}

// Otherwise most injected faults would hit handles, and change nothing.
TEST_F(OpStateTest, AFaultThatDropsAHoldIsNotSpentOnAHandle) {
  test_faults_allowed = true;
  ASSERT_TRUE(InjectTestFault(TestFault::kDropHold, 1));
  Op reader = Reader();
  reader.Compute();
  EXPECT_TRUE(TakeTestFault(TestFault::kDropHold));
  test_faults_allowed = false;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
