// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests: a GPU of two groups without a GPU, and single ops on it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_FIXTURE_H_

#define EIGEN_USE_THREADS

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/manual_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/public/version.h"
#include "unsupported/Eigen/CXX11/Tensor"

namespace tensorflow::multistream {

using Member = GroupDevice<FakeDevice>;

// An allocator that can be full. Then an allocation waits for a deallocation,
// as in TensorFlow's GPU allocators, and fails if there is none.
class FullMemory : public AllocatorWrapper {
 public:
  FullMemory() : AllocatorWrapper(cpu_allocator()) {}
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    {
      absl::MutexLock lock(&mu_);
      ++waiting_;
      const bool got_some =
          mu_.AwaitWithTimeout(absl::Condition(
                                   +[](bool* full) { return !*full; }, &full_),
                               absl::Seconds(10));
      --waiting_;
      if (!got_some) return nullptr;
    }
    return AllocatorWrapper::AllocateRaw(alignment, bytes);
  }
  void* AllocateRaw(size_t alignment, size_t bytes,
                    const AllocationAttributes&) override {
    return AllocateRaw(alignment, bytes);
  }

  void SetFull(bool full) {
    absl::MutexLock lock(&mu_);
    full_ = full;
  }
  void UntilSomebodyWaits() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](int* waiting) { return *waiting > 0; }, &waiting_));
  }

 private:
  absl::Mutex mu_;
  bool full_ ABSL_GUARDED_BY(mu_) = false;
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
};

// An op with its kernel and context.
class Op {
 public:
  // `step`: the op's step, or nullptr.
  Op(Device* device, const NodeDefBuilder& builder,
     std::vector<TensorValue> inputs, std::shared_ptr<Step> step,
     bool is_reader = false)
      : device_(device), inputs_(std::move(inputs)) {
    NodeDef node;
    absl::Status status = NodeDefBuilder(builder).Finalize(&node);
    EXPECT_TRUE(status.ok()) << status;
    kernel_ = CreateOpKernel(DEVICE_CPU, device, cpu_allocator(), node,
                             TF_GRAPH_DEF_VERSION, &status);
    EXPECT_TRUE(status.ok()) << status;
    if (is_reader) traits_.readers.insert(kernel_.get());
    params_.device = device;
    params_.resource_manager = device->resource_manager();
    params_.op_kernel = kernel_.get();
    params_.inputs = inputs_;
    params_.output_attr_array = &output_;
    if (step != nullptr) {
      StreamGroup* group = step->group();
      runner_ = StepRunner{std::move(step), &traits_, nullptr, nullptr, group};
      params_.runner = &runner_;
    }
    context_ = std::make_unique<OpKernelContext>(&params_);
  }

  absl::Status Compute() {
    device_->Compute(kernel_.get(), context_.get());
    return context_->status();
  }
  void Begin() {
    device_->ComputeAsync(kernel_->AsAsync(), context_.get(),
                          [this] { is_done_ = true; });
  }
  OpKernel* kernel() { return kernel_.get(); }
  bool is_done() const { return is_done_; }

 private:
  Device* const device_;
  std::vector<TensorValue> inputs_;
  KernelTraits traits_;
  std::function<void(std::function<void()>)> runner_;
  std::unique_ptr<OpKernel> kernel_;
  const AllocatorAttributes output_;
  OpKernelContext::Params params_;
  std::unique_ptr<OpKernelContext> context_;
  bool is_done_ = false;
};

class GroupDeviceTest : public ::testing::Test {
 protected:
  GroupDeviceTest()
      : groups_(NewManualGroups(2, &record_, &streams_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0], &memory_)),
        step_(NewStep()) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1], &memory_));
    for (int i = 0; i < 2; ++i) Device(i)->set_eigen_cpu_device(&cpu_);
  }

  Member* Device(int group) {
    return static_cast<Member*>(leader_->group_device(group));
  }
  // A step on group 1 that changes no state.
  std::shared_ptr<Step> NewStep() {
    return std::make_shared<Step>(groups_.get(), groups_->group(1),
                                  /*changes_state=*/false);
  }
  // The resource manager owns the variable.
  Var* NewVariable(const std::string& name, const Tensor& value) {
    auto* var = new Var(DT_FLOAT);
    *var->tensor() = value;
    var->is_initialized = true;
    ResourceMgr* resources = leader_->resource_manager();
    EXPECT_TRUE(
        resources->Create(resources->default_container(), name, var).ok());
    return var;
  }
  Tensor Handle(const std::string& name) {
    Tensor handle(DT_RESOURCE, TensorShape({}));
    handle.scalar<ResourceHandle>()() =
        MakeResourceHandle(leader_->resource_manager()->default_container(),
                           name, *leader_, TypeIndex::Make<Var>());
    return handle;
  }
  // On group 1, the op is part of step_.
  Op NewOp(int group, TensorValue input, const std::string& label = "",
           bool is_reader = false) {
    const DataType dtype = input.tensor->dtype();
    NodeDefBuilder builder(
        "op", input.is_ref() ? "MultiStreamTestRefOp" : "MultiStreamTestOp");
    builder.Input("x", 0, input.is_ref() ? MakeRefType(dtype) : dtype);
    if (!label.empty()) builder.Attr("_kernel", label);
    return Op(Device(group), builder, {input}, group == 0 ? nullptr : step_,
              is_reader);
  }

  FullMemory memory_;
  thread::ThreadPool pool_{Env::Default(), "kernels", 1};
  Eigen::ThreadPoolDevice cpu_{pool_.AsEigenThreadPool(), 1};
  FakeContext contexts_[2];
  StreamRecord record_;
  std::vector<ManualStreamGroup*> streams_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
  std::shared_ptr<Step> step_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_FIXTURE_H_
