// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/op_uses.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

// The function that the test op runs instead of a launch.
std::function<void(OpKernelContext*)>* OnCompute() {
  static auto* on_compute = new std::function<void(OpKernelContext*)>;
  return on_compute;
}

class TestOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    if (*OnCompute()) (*OnCompute())(context);
  }
};

REGISTER_OP("MultiStreamTestUses")
    .Input("x: float")
    .Input("y: float")
    .Output("z: float");
REGISTER_OP("MultiStreamTestUsesVariable")
    .Input("x: resource")
    .Output("z: float");
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUses").Device(DEVICE_CPU), TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUses")
                            .Device(DEVICE_CPU)
                            .HostMemory("y")
                            .HostMemory("z")
                            .Label("MultiStreamTestHost"),
                        TestOp);
REGISTER_KERNEL_BUILDER(Name("MultiStreamTestUsesVariable").Device(DEVICE_CPU),
                        TestOp);

using Uses = std::set<std::tuple<const void*, size_t, bool>>;

// The use of a whole tensor, which is a whole allocation.
std::tuple<const void*, size_t, bool> UseOf(const Tensor& tensor, bool writes) {
  return {tensor.data(), tensor.TotalBytes(), writes};
}
std::tuple<const void*, size_t, bool> Reads(const Tensor& tensor) {
  return UseOf(tensor, false);
}
std::tuple<const void*, size_t, bool> Writes(const Tensor& tensor) {
  return UseOf(tensor, true);
}

// Runs one op on a device that notes the op's memory uses.
class OpUsesTest : public ::testing::Test, public OpWatcher {
 protected:
  OpUsesTest() : recorded_(&device_, &memory_) {
    *OnCompute() = nullptr;
    recorded_.Watch(this);
  }

  void Begins(const std::string&) override { calls_.push_back("begins"); }
  void Launched(const std::string&, std::vector<MemoryUse> uses) override {
    calls_.push_back("launched");
    uses_ = std::move(uses);
  }

  // A tensor in the recording's device memory.
  Tensor Floats(int count) {
    return Tensor(memory_.device(), DT_FLOAT, TensorShape({count}));
  }
  // A tensor outside the recording's memory.
  static Tensor Others(int count) {
    return Tensor(DT_FLOAT, TensorShape({count}));
  }

  // Adds a variable to the device. Returns the variable and its handle.
  Var* AddVariable(const std::string& name, const Tensor& value,
                   Tensor* handle) {
    auto* var = new Var(DT_FLOAT);
    *var->tensor() = value;
    var->is_initialized = true;
    ResourceMgr* resources = device_.resource_manager();
    EXPECT_TRUE(
        resources->Create(resources->default_container(), name, var).ok());
    *handle = HandleOf(name);
    return var;
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

  // The uses of an op that runs with inputs of these types.
  Uses Run(NodeDefBuilder op, std::vector<Tensor*> tensors) {
    std::vector<TensorValue> inputs;
    for (Tensor* tensor : tensors) {
      op.Input("input", static_cast<int>(inputs.size()), tensor->dtype());
      inputs.emplace_back(tensor);
    }
    NodeDef node;
    absl::Status status = op.Finalize(&node);
    EXPECT_TRUE(status.ok()) << status;
    const std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, &device_, cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    if (kernel == nullptr) return {};
    const AllocatorAttributes output;
    OpKernelContext::Params params;
    params.device = &device_;
    params.resource_manager = device_.resource_manager();
    params.op_kernel = kernel.get();
    params.inputs = inputs;
    params.output_attr_array = &output;
    OpKernelContext context(&params);
    uses_.clear();
    device_.Compute(kernel.get(), &context);
    EXPECT_TRUE(context.status().ok()) << context.status();
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

  StreamRecord record_;
  FakeStreamGroup group_{0, 0, &record_};
  FakeContext context_;
  RecordingDevice<FakeDevice> device_{&group_, &context_};
  RecordingMemory memory_{cpu_allocator(), cpu_allocator()};
  RecordingDevice<FakeDevice>::Uses recorded_;
  std::vector<std::string> calls_;
  std::vector<MemoryUse> uses_;
};

TEST_F(OpUsesTest, InputsThatSomebodyElseHasAreRead) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_x = x, others_y = y;
  *OnCompute() = [this](OpKernelContext*) {
    EXPECT_EQ(calls_, std::vector<std::string>({"begins"}));
  };
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y)}));
  EXPECT_EQ(calls_, std::vector<std::string>({"begins", "launched"}));
}

// An op may write its result into an input with a sole reference.
TEST_F(OpUsesTest, InputsThatNobodyElseHasAreWritten) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_y = y;
  EXPECT_EQ(Run(&x, &y), Uses({Writes(x), Reads(y)}));
}

TEST_F(OpUsesTest, AnInputThatIsGivenTwiceIsRead) {
  Tensor x = Floats(4), again = x;
  EXPECT_EQ(Run(&x, &again), Uses({Reads(x)}));
}

TEST_F(OpUsesTest, InputsOutsideOfTheRecordingAreUsedToo) {
  Tensor x = Others(4), y = Floats(8);
  const Tensor constant = x, others_y = y;
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y)}));
}

TEST_F(OpUsesTest, EmptyInputsAreNotUsed) {
  Tensor x = Floats(4), y = Floats(0);
  EXPECT_EQ(Run(&x, &y), Uses({Writes(x)}));
  Tensor part = x.Slice(1, 1);  // empty, but not null
  EXPECT_NE(part.data(), nullptr);
  EXPECT_EQ(Run(&part, &y), Uses());
}

TEST_F(OpUsesTest, APartOfATensorIsAllOfIt) {
  Tensor all = Floats(64), y = Floats(0);
  Tensor part = all.Slice(16, 48);
  ASSERT_NE(part.data(), all.data());
  EXPECT_EQ(Run(&part, &y), Uses({Reads(all)}));
  const auto writes = Writes(all);
  all = Tensor();
  EXPECT_EQ(Run(&part, &y), Uses({writes}));
  part = part.Slice(16, 24);  // a part of a part
  EXPECT_EQ(Run(&part, &y), Uses({writes}));
}

TEST_F(OpUsesTest, OnlyTheRecordingsMemoryIsUsedAsTheHosts) {
  Tensor x = Floats(4), of_host = Others(8), of_device = Floats(8);
  const Tensor others_x = x, other = of_device;
  *OnCompute() = [](OpKernelContext* context) {
    context->set_output(0, Others(2));
  };
  EXPECT_EQ(RunWithHost(&x, &of_host), Uses({Reads(x)}));
  EXPECT_EQ(RunWithHost(&x, &of_device), Uses({Reads(x), Reads(of_device)}));
  // A host output that the op passes through from the recording's memory.
  const Tensor made = Floats(2);
  *OnCompute() = [&](OpKernelContext* context) {
    context->set_output(0, made);
  };
  EXPECT_EQ(RunWithHost(&x, &of_host), Uses({Reads(x), Reads(made)}));
}

TEST_F(OpUsesTest, WhatAnOpHandsOnIsRead) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_x = x, others_y = y, kept = Others(2);
  *OnCompute() = [&](OpKernelContext* context) {
    context->set_output(0, kept);
  };
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y), Reads(kept)}));
  *OnCompute() = [&](OpKernelContext* context) {
    context->set_output(0, kept.Slice(1, 2));
  };
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y), Reads(kept)}));
  *OnCompute() = [&](OpKernelContext* context) {
    context->set_output(0, Floats(0));
  };
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y)}));
}

TEST_F(OpUsesTest, AnInputThatAnOpMakesItsOutputIsWritten) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_y = y;
  *OnCompute() = [](OpKernelContext* context) {
    Tensor* output = nullptr;
    int from = -1;
    ASSERT_TRUE(context
                    ->forward_input_or_allocate_output({0}, 0, TensorShape({4}),
                                                       &output, &from)
                    .ok());
    EXPECT_EQ(from, 0);
  };
  EXPECT_EQ(Run(&x, &y), Uses({Writes(x), Reads(x), Reads(y)}));
}

TEST_F(OpUsesTest, WhatAnOpAllocatesIsWritten) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_x = x, others_y = y;
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
  const Uses expected_first = Run(&x, &y);
  EXPECT_EQ(expected_first, Uses({Reads(x),
                                  Reads(y),
                                  {output_at, 64, true},
                                  {output_at, 64, false},
                                  {workspace_at, 128, true}}));
  // Memory allocated between two ops is not a use of the second op.
  const Tensor others = Floats(100);
  *OnCompute() = nullptr;
  EXPECT_EQ(Run(&x, &y), Uses({Reads(x), Reads(y)}));
}

TEST_F(OpUsesTest, AVariablesReaderReadsIt) {
  const Tensor value = Others(4);
  Tensor handle;
  AddVariable("var", value, &handle);
  EXPECT_EQ(Run(NodeDefBuilder("op", "ReadVariableOp").Attr("dtype", DT_FLOAT),
                {&handle}),
            Uses({Reads(value)}));
}

TEST_F(OpUsesTest, WhoTakesAVariableMayWriteIt) {
  const Tensor old_value = Others(4);
  Tensor handle;
  AddVariable("var", old_value, &handle);
  // An op that may write a variable, as AssignAddVariableOp does.
  EXPECT_EQ(Run(NodeDefBuilder("op", "MultiStreamTestUsesVariable"), {&handle}),
            Uses({Writes(old_value)}));
  Tensor new_value = Floats(4);
  const Tensor others = new_value;
  const Uses uses =
      Run(NodeDefBuilder("op", "AssignVariableOp").Attr("dtype", DT_FLOAT),
          {&handle, &new_value});
  EXPECT_EQ(uses.count(Writes(old_value)), 1);
  EXPECT_EQ(uses.count(Reads(new_value)), 1);
}

TEST_F(OpUsesTest, OnlyVariablesThatThereAreAreUsed) {
  Tensor missing = HandleOf("missing"), empty;
  AddVariable("empty", Tensor(), &empty);
  const NodeDefBuilder op("op", "MultiStreamTestUsesVariable");
  EXPECT_EQ(Run(op, {&missing}), Uses());
  EXPECT_EQ(Run(op, {&empty}), Uses());
}

// OpUses alone, without the device.

TEST_F(OpUsesTest, WhatWasAllocatedIsAddedAsItIsSaid) {
  Tensor x = Floats(4), y = Floats(8);
  const Tensor others_x = x, others_y = y;
  *OnCompute() = [&](OpKernelContext* context) {
    OpUses uses(&memory_, &context->op_kernel(), context);
    const std::vector<MemoryUse> given = {{16, 24, true}, {32, 40, false}};
    const std::vector<MemoryUse> all = std::move(uses).WithMade(context, given);
    ASSERT_EQ(all.size(), 4);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(all[2 + i].begin, given[i].begin);
      EXPECT_EQ(all[2 + i].end, given[i].end);
      EXPECT_EQ(all[2 + i].writes, given[i].writes);
    }
  };
  Run(&x, &y);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
