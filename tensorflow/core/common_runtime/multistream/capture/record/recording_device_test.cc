// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

// The function that the test op runs instead of a launch.
std::function<void(OpKernelContext*)>* OnCompute() {
  static auto* on_compute = new std::function<void(OpKernelContext*)>;
  return on_compute;
}

class TestOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { (*OnCompute())(context); }
};

REGISTER_OP("MultiStreamTestAlone");
REGISTER_OP("MultiStreamTestUses")
    .Input("x: float")
    .Input("y: float")
    .Output("z: float");
REGISTER_OP("MultiStreamTestUsesVariable")
    .Input("x: resource")
    .Output("z: float");
REGISTER_OP("MultiStreamTestUsesList").Input("x: variant").Output("z: float");
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUsesList").Device(DEVICE_CPU),
                        TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestAlone").Device(DEVICE_CPU),
                        TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUses").Device(DEVICE_CPU), TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUses")
                            .Device(DEVICE_CPU)
                            .HostMemory("y")
                            .HostMemory("z")
                            .Label("MultiStreamTestHost"),
                        TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUsesVariable").Device(DEVICE_CPU),
                        TestOp);

// What a DT_VARIANT may have. Decoding is not needed.
struct TestList {
  std::string TypeName() const { return "MultiStreamTestList"; }
  void Encode(VariantTensorData* data) const {
    for (const Tensor& element : elements) *data->add_tensors() = element;
  }
  bool Decode(const VariantTensorData&) { return false; }

  std::vector<Tensor> elements;
};

using Uses = std::set<std::tuple<const void*, size_t, bool>>;

// The use of a whole tensor, which is a whole allocation.
std::tuple<const void*, size_t, bool> Reads(const Tensor& tensor) {
  return {tensor.data(), tensor.TotalBytes(), false};
}
std::tuple<const void*, size_t, bool> Writes(const Tensor& tensor) {
  return {tensor.data(), tensor.TotalBytes(), true};
}

// Runs one op on a recording device.
class RecordingDeviceTest : public ::testing::Test {
 protected:
  using Recording = RecordingDevice<FakeDevice>::Uses;

  RecordingDeviceTest() {
    *OnCompute() = [](OpKernelContext*) {};
  }

  // A tensor in the recording's device memory.
  Tensor Floats(int count) {
    return Tensor(memory_.device(), DT_FLOAT, TensorShape({count}));
  }
  // A tensor outside the recording's memory.
  static Tensor Others(int count) {
    return Tensor(DT_FLOAT, TensorShape({count}));
  }

  // Adds a variable to the device. Returns its handle.
  Tensor AddVariable(const std::string& name, const Tensor& value) {
    auto* var = new Var(DT_FLOAT);
    *var->tensor() = value;
    var->is_initialized = true;
    ResourceMgr* resources = device_.resource_manager();
    EXPECT_TRUE(
        resources->Create(resources->default_container(), name, var).ok());
    return HandleOf(name);
  }
  // A handle in the recording's memory, as on an emulated GPU. The variable's
  // value is not in that memory.
  Tensor HandleOf(const std::string& name) {
    Tensor handle(memory_.device(), DT_RESOURCE, TensorShape({}));
    handle.scalar<ResourceHandle>()() =
        MakeResourceHandle(device_.resource_manager()->default_container(),
                           name, device_, TypeIndex::Make<Var>());
    return handle;
  }

  absl::Status RunOp(NodeDefBuilder op, std::vector<Tensor*> tensors) {
    std::vector<TensorValue> inputs;
    for (Tensor* tensor : tensors) {
      op.Input("input", static_cast<int>(inputs.size()), tensor->dtype());
      inputs.emplace_back(tensor);
    }
    NodeDef node;
    TF_RETURN_IF_ERROR(op.Finalize(&node));
    absl::Status status;
    const std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, &device_, cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    TF_RETURN_IF_ERROR(status);
    const AllocatorAttributes output;
    OpKernelContext::Params params;
    params.device = &device_;
    params.resource_manager = device_.resource_manager();
    params.op_kernel = kernel.get();
    params.inputs = inputs;
    params.output_attr_array = &output;
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

// An op without inputs, which ends with a given status.
class FailuresTest : public RecordingDeviceTest {
 protected:
  absl::Status Run(const absl::Status& end = absl::OkStatus()) {
    *OnCompute() = [this, &end](OpKernelContext* context) {
      ++runs_;
      context->SetStatus(end);
    };
    return RunOp(NodeDefBuilder("op", "MultiStreamTestAlone"), {});
  }

  const absl::Status failed_ = absl::InternalError("it waits for the GPU");
  int runs_ = 0;
};

// TensorFlow's kernels abort the process if a launch fails, as after an op that
// has ended the capture.
TEST_F(FailuresTest, NoOpRunsAfterOneThatFailedUntilTheNextRecording) {
  EXPECT_EQ(Run(failed_), failed_);
  EXPECT_TRUE(Run().ok());  // nothing was recorded yet
  {
    const Recording recording(&device_, &memory_);
    EXPECT_TRUE(Run().ok());
    EXPECT_EQ(Run(failed_), failed_);
    EXPECT_TRUE(absl::IsCancelled(Run()));
    EXPECT_TRUE(absl::IsCancelled(Run()));
    EXPECT_EQ(runs_, 4);
  }
  const Recording next(&device_, &memory_);
  EXPECT_TRUE(Run().ok());
}

TEST_F(FailuresTest, AnOpAfterWhichTheCheckFailsIsNamed) {
  absl::Status check;
  {
    Recording recording(&device_, &memory_);
    recording.CheckAfterOps([&check] { return check; });
    EXPECT_TRUE(Run().ok());
    check = absl::InternalError("the capture has ended");
    const absl::Status status = Run();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_TRUE(absl::StrContains(
        status.message(),
        "MultiStreamTestAlone 'op' cannot be recorded: the capture has ended"))
        << status;
    EXPECT_EQ(recording.failure(), status);
    check = absl::OkStatus();
    EXPECT_TRUE(absl::IsCancelled(Run()));
    EXPECT_EQ(recording.failure(), status);
    EXPECT_EQ(runs_, 2);
  }
  // A check and a failure belong to one recording.
  check = absl::InternalError("the capture has ended");
  const Recording next(&device_, &memory_);
  EXPECT_TRUE(Run().ok());
}

TEST_F(FailuresTest, TheCheckKnowsBetterThanAnOpThatFailed) {
  Recording recording(&device_, &memory_);
  recording.CheckAfterOps([] { return absl::InternalError("it has ended"); });
  EXPECT_EQ(Run(failed_), failed_);
  EXPECT_TRUE(absl::IsFailedPrecondition(recording.failure()));
  EXPECT_TRUE(absl::StrContains(recording.failure().message(), "it has ended"));
}

// TensorFlow finds its per-group state by the thread's group.
TEST_F(RecordingDeviceTest, OpsKnowTheirGroup) {
  const Recording recording(&device_, &memory_);
  const StreamGroup* seen = nullptr;
  *OnCompute() = [&seen](OpKernelContext*) { seen = GroupOnThread::Get(); };
  EXPECT_TRUE(RunOp(NodeDefBuilder("op", "MultiStreamTestAlone"), {}).ok());
  EXPECT_EQ(seen, &group_);
}

TEST_F(RecordingDeviceTest, ManyDimensionsAreNotRecorded) {
  const Recording recording(&device_, &memory_);
  Tensor seven(DT_FLOAT, {1, 1, 1, 1, 1, 1, 1});
  Tensor eight(DT_FLOAT, {1, 1, 1, 1, 1, 1, 1, 2});
  const NodeDefBuilder op("op", "MultiStreamTestUses");
  EXPECT_TRUE(RunOp(op, {&seven, &seven}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(RunOp(op, {&seven, &eight})));
}

// The device notes the op's memory uses.
class OpUsesTest : public RecordingDeviceTest, public OpWatcher {
 protected:
  OpUsesTest() { recorded_.Watch(this); }

  void Begins(const LaunchedOp&) override { calls_.push_back("begins"); }
  void Launched(LaunchedOp op) override {
    calls_.push_back("launched");
    uses_ = std::move(op.uses);
  }

  Uses Run(const NodeDefBuilder& op, const std::vector<Tensor*>& inputs) {
    uses_.clear();
    const absl::Status status = RunOp(op, inputs);
    EXPECT_TRUE(status.ok()) << status;
    Uses uses;
    for (const MemoryUse& use : uses_) {
      EXPECT_LT(use.begin, use.end);
      uses.emplace(reinterpret_cast<const void*>(use.begin),
                   use.end - use.begin, use.writes);
    }
    return uses;
  }
  Uses Run(Tensor* x, Tensor* y) {
    return Run(NodeDefBuilder("op", "MultiStreamTestUses"), {x, y});
  }
  // The uses of the kernel whose second input and output are on the host.
  Uses RunWithHost(Tensor* x, Tensor* y) {
    return Run(NodeDefBuilder("op", "MultiStreamTestUses")
                   .Attr("_kernel", "MultiStreamTestHost"),
               {x, y});
  }

  // The op makes `output` its output.
  static void GiveOn(const Tensor& output) {
    *OnCompute() = [output](OpKernelContext* context) {
      context->set_output(0, output);
    };
  }

  Recording recorded_{&device_, &memory_};
  std::vector<std::string> calls_;
  std::vector<MemoryUse> uses_;
  // Inputs, of which others have references, too.
  Tensor x_ = Floats(4), y_ = Floats(8), none_ = Floats(0);
  Tensor others_x_ = x_, others_y_ = y_;
};

TEST_F(OpUsesTest, OnlyInputsThatNobodyElseHasAreWritten) {
  *OnCompute() = [this](OpKernelContext*) {
    EXPECT_EQ(calls_, std::vector<std::string>({"begins"}));
  };
  EXPECT_EQ(Run(&x_, &y_), Uses({Reads(x_), Reads(y_)}));
  EXPECT_EQ(calls_, std::vector<std::string>({"begins", "launched"}));
  // An op may write its result into an input with a sole reference.
  others_x_ = Tensor();
  *OnCompute() = [](OpKernelContext*) {};
  EXPECT_EQ(Run(&x_, &y_), Uses({Writes(x_), Reads(y_)}));
  Tensor again = x_;
  EXPECT_EQ(Run(&x_, &again), Uses({Reads(x_)}));
  Tensor outside = Others(4);
  const Tensor others_outside = outside;
  EXPECT_EQ(Run(&outside, &y_), Uses({Reads(outside), Reads(y_)}));
}

TEST_F(OpUsesTest, EmptyInputsAreNotUsed) {
  EXPECT_EQ(Run(&x_, &none_), Uses({Reads(x_)}));
  Tensor part = x_.Slice(1, 1);  // empty, but not null
  EXPECT_NE(part.data(), nullptr);
  EXPECT_EQ(Run(&part, &none_), Uses());
}

TEST_F(OpUsesTest, ElementsOfListsAreRead) {
  Tensor lists(DT_VARIANT, TensorShape({2}));
  lists.flat<Variant>()(0) = TestList{{x_, y_.Slice(2, 4), none_}};
  const Tensor outside = Others(4);
  lists.flat<Variant>()(1) = TestList{{outside}};
  // The list has the only references.
  others_x_ = others_y_ = Tensor();
  const Uses expected = {Reads(x_), Reads(y_), Reads(outside)};
  x_ = y_ = Tensor();
  const NodeDefBuilder op("op", "MultiStreamTestUsesList");
  EXPECT_EQ(Run(op, {&lists}), expected);
  Tensor none(DT_VARIANT, TensorShape({}));
  EXPECT_EQ(Run(op, {&none}), Uses());
}

TEST_F(OpUsesTest, APartOfATensorIsAllOfIt) {
  Tensor all = Floats(64);
  Tensor part = all.Slice(16, 48);
  ASSERT_NE(part.data(), all.data());
  EXPECT_EQ(Run(&part, &none_), Uses({Reads(all)}));
  const auto writes = Writes(all);
  all = Tensor();
  EXPECT_EQ(Run(&part, &none_), Uses({writes}));
  part = part.Slice(16, 24);  // a part of a part
  EXPECT_EQ(Run(&part, &none_), Uses({writes}));
}

TEST_F(OpUsesTest, OnlyTheRecordingsMemoryIsUsedAsTheHosts) {
  Tensor of_host = Others(8);
  GiveOn(Others(2));
  EXPECT_EQ(RunWithHost(&x_, &of_host), Uses({Reads(x_)}));
  EXPECT_EQ(RunWithHost(&x_, &y_), Uses({Reads(x_), Reads(y_)}));
  // A host output that the op passes through from the recording's memory.
  const Tensor made = Floats(2);
  GiveOn(made);
  EXPECT_EQ(RunWithHost(&x_, &of_host), Uses({Reads(x_), Reads(made)}));
}

TEST_F(OpUsesTest, WhatAnOpHandsOnIsRead) {
  const Tensor kept = Others(2);
  for (const Tensor& output : {kept, kept.Slice(1, 2)}) {
    GiveOn(output);
    EXPECT_EQ(Run(&x_, &y_), Uses({Reads(x_), Reads(y_), Reads(kept)}));
  }
  GiveOn(none_);
  EXPECT_EQ(Run(&x_, &y_), Uses({Reads(x_), Reads(y_)}));
}

TEST_F(OpUsesTest, AnInputThatAnOpMakesItsOutputIsWritten) {
  others_x_ = Tensor();
  *OnCompute() = [](OpKernelContext* context) {
    Tensor* output = nullptr;
    int from = -1;
    ASSERT_TRUE(context
                    ->forward_input_or_allocate_output({0}, 0, TensorShape({4}),
                                                       &output, &from)
                    .ok());
    EXPECT_EQ(from, 0);
  };
  EXPECT_EQ(Run(&x_, &y_), Uses({Writes(x_), Reads(x_), Reads(y_)}));
}

TEST_F(OpUsesTest, WhatAnOpAllocatesIsWritten) {
  const void* output_at = nullptr;
  const void* workspace_at = nullptr;
  *OnCompute() = [&](OpKernelContext* context) {
    Tensor* output = nullptr;
    Tensor workspace;
    ASSERT_TRUE(context->allocate_output(0, TensorShape({16}), &output).ok());
    ASSERT_TRUE(
        context->allocate_temp(DT_FLOAT, TensorShape({32}), &workspace).ok());
    output_at = output->data();
    workspace_at = workspace.data();
  };
  const Uses found = Run(&x_, &y_);
  EXPECT_EQ(found, Uses({Reads(x_),
                         Reads(y_),
                         {output_at, 64, true},
                         {output_at, 64, false},
                         {workspace_at, 128, true}}));
  // Memory allocated between two ops is not a use of the second op.
  const Tensor others = Floats(100);
  *OnCompute() = [](OpKernelContext*) {};
  EXPECT_EQ(Run(&x_, &y_), Uses({Reads(x_), Reads(y_)}));
}

TEST_F(OpUsesTest, WhoTakesAVariableMayWriteItUnlessItOnlyReads) {
  const Tensor value = Others(4);
  Tensor handle = AddVariable("var", value);
  EXPECT_EQ(Run(NodeDefBuilder("op", "ReadVariableOp").Attr("dtype", DT_FLOAT),
                {&handle}),
            Uses({Reads(value)}));
  // An op that may write a variable, as AssignAddVariableOp does.
  const NodeDefBuilder taker("op", "MultiStreamTestUsesVariable");
  EXPECT_EQ(Run(taker, {&handle}), Uses({Writes(value)}));
  const Uses uses =
      Run(NodeDefBuilder("op", "AssignVariableOp").Attr("dtype", DT_FLOAT),
          {&handle, &x_});
  EXPECT_EQ(uses.count(Writes(value)), 1);
  EXPECT_EQ(uses.count(Reads(x_)), 1);
  // Only variables that exist, and have a value, are used.
  Tensor missing = HandleOf("missing"), empty = AddVariable("empty", Tensor());
  EXPECT_EQ(Run(taker, {&missing}), Uses());
  EXPECT_EQ(Run(taker, {&empty}), Uses());
}

}  // namespace
}  // namespace tensorflow::multistream
