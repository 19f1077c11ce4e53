// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// An op that waits for memory does not block ops that would release memory,
// except those that a mutex in its kernel blocks in stock TensorFlow, too.

#define EIGEN_USE_THREADS

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/public/version.h"
#include "unsupported/Eigen/CXX11/Tensor"

namespace tensorflow {
namespace multistream {
namespace {

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

using Member = GroupDevice<FakeDevice>;

class MemoryWaitTest : public ::testing::Test {
 protected:
  MemoryWaitTest()
      : groups_(NewFakeGroups(0, 2, &record_)),
        leader_(std::make_unique<Member>(groups_.get(), groups_->group(0),
                                         &contexts_[0], &memory_)) {
    leader_->AddHidden(std::make_unique<Member>(
        groups_.get(), groups_->group(1), &contexts_[1], &memory_));
    for (int i = 0; i < 2; ++i) Device(i)->set_eigen_cpu_device(&cpu_);
    NewVariable("v", &v_);
    NewVariable("w", &w_);
  }

  Member* Device(int group) {
    return static_cast<Member*>(leader_->group_device(group));
  }

  void NewVariable(const std::string& name, Var** var) {
    *var = new Var(DT_FLOAT);
    *(*var)->tensor() = Floats();
    (*var)->is_initialized = true;
    ResourceMgr* resources = Device(0)->resource_manager();
    ASSERT_TRUE(
        resources->Create(resources->default_container(), name, *var).ok());
  }
  static Tensor Floats() {
    Tensor tensor(DT_FLOAT, TensorShape({2}));
    tensor.flat<float>().setConstant(3);
    return tensor;
  }

  // Runs `op` on `group`, with a variable and another input. On group 1 the op
  // is part of a step that changes no state.
  absl::Status Run(int group, const std::string& op, const std::string& name,
                   const Tensor* input) {
    NodeDefBuilder builder("op", op);
    builder.Input("var", 0, DT_RESOURCE).Attr("dtype", DT_FLOAT);
    if (input != nullptr) builder.Input("x", 0, input->dtype());
    NodeDef node;
    absl::Status status = builder.Finalize(&node);
    if (!status.ok()) return status;
    std::unique_ptr<OpKernel> kernel =
        CreateOpKernel(DEVICE_CPU, Device(group), cpu_allocator(), node,
                       TF_GRAPH_DEF_VERSION, &status);
    if (!status.ok()) return status;
    KernelTraits kernels;
    kernels.readers.insert(kernel.get());
    std::function<void(std::function<void()>)> runner;
    if (group > 0) {
      runner = StepRunner{
          std::make_shared<Step>(groups_.get(), groups_->group(group),
                                 /*changes_state=*/false),
          &kernels, nullptr, nullptr, groups_->group(group)};
    }
    OpKernelContext::Params params;
    params.device = Device(group);
    params.op_kernel = kernel.get();
    params.resource_manager = Device(group)->resource_manager();
    params.runner = &runner;
    Tensor handle(DT_RESOURCE, TensorShape({}));
    handle.scalar<ResourceHandle>()() =
        MakeResourceHandle(params.resource_manager->default_container(), name,
                           *Device(group), TypeIndex::Make<Var>());
    std::vector<TensorValue> inputs = {TensorValue(&handle)};
    Tensor second;
    if (input != nullptr) {
      second = *input;
      inputs.emplace_back(&second);
    }
    const AllocatorAttributes output;
    params.inputs = inputs;
    params.output_attr_array = &output;
    OpKernelContext context(&params);
    Device(group)->Compute(kernel.get(), &context);
    return context.status();
  }

  // Runs `one` until it waits for memory, then `other`, which releases memory
  // when it ends.
  void RunBoth(const std::function<absl::Status()>& one,
               const std::function<absl::Status()>& other) {
    memory_.SetFull(true);
    absl::Status first, second;
    std::thread thread([&] { first = one(); });
    memory_.UntilSomebodyWaits();
    second = other();
    memory_.SetFull(false);
    thread.join();
    EXPECT_TRUE(first.ok()) << first;
    EXPECT_TRUE(second.ok()) << second;
  }

  FullMemory memory_;
  thread::ThreadPool pool_{Env::Default(), "kernels", 1};
  Eigen::ThreadPoolDevice cpu_{pool_.AsEigenThreadPool(), 1};
  FakeContext contexts_[2];
  StreamRecord record_;
  std::unique_ptr<GpuGroups> groups_;
  std::unique_ptr<Member> leader_;
  Var* v_;
  Var* w_;
};

TEST_F(MemoryWaitTest, AChangeOfAVariableForWhatAReadOfAnotherGivesBack) {
  // `value` shares the buffer, so the change needs memory for a new value.
  const Tensor value = *v_->tensor();
  const Tensor one = Floats();
  RunBoth([&] { return Run(0, "AssignAddVariableOp", "v", &one); },
          [&] { return Run(1, "ReadVariableOp", "w", nullptr); });
  EXPECT_EQ(v_->tensor()->flat<float>()(0), 6);
  EXPECT_EQ(value.flat<float>()(0), 3);
}

TEST_F(MemoryWaitTest, AReadOfAVariableForWhatAChangeOfAnotherGivesBack) {
  const Tensor index(0);
  const Tensor one = Floats();
  RunBoth([&] { return Run(1, "ResourceGather", "v", &index); },
          [&] { return Run(0, "AssignAddVariableOp", "w", &one); });
  EXPECT_EQ(w_->tensor()->flat<float>()(0), 6);
}

// A buffer of another group is copied before it becomes a variable's value.
TEST_F(MemoryWaitTest, AnAssignmentForWhatAReadOfTheSameVariableGivesBack) {
  Tensor value(DT_FLOAT, TensorShape({256}));
  value.flat<float>().setConstant(5);
  MemoryOwner::Get()->Add(value.data(), value.TotalBytes(), groups_->group(1));
  RunBoth([&] { return Run(0, "AssignVariableOp", "v", &value); },
          [&] { return Run(1, "ReadVariableOp", "v", nullptr); });
  MemoryOwner::Get()->Add(value.data(), value.TotalBytes(), nullptr);
  EXPECT_NE(v_->tensor()->data(), value.data());
  EXPECT_EQ(v_->tensor()->flat<float>()(0), 5);
}

// The first gather copies the value, because `value` shares the buffer.
TEST_F(MemoryWaitTest, AGatherForWhatAReadOfTheSameVariableGivesBack) {
  const Tensor value = *v_->tensor();
  const Tensor index(0);
  RunBoth([&] { return Run(1, "ResourceGather", "v", &index); },
          [&] { return Run(1, "ReadVariableOp", "v", nullptr); });
  EXPECT_TRUE(v_->copy_on_read_mode.load());
  EXPECT_NE(v_->tensor()->data(), value.data());
}

// While the gather waits for memory, a value of another shape is assigned.
TEST_F(MemoryWaitTest, AGatherMovesTheValueThatTheVariableHasByThen) {
  const Tensor value = *v_->tensor();
  Tensor other(DT_FLOAT, TensorShape({3}));
  other.flat<float>().setConstant(7);
  const Tensor index(2);
  RunBoth([&] { return Run(1, "ResourceGather", "v", &index); },
          [&] { return Run(0, "AssignVariableOp", "v", &other); });
  EXPECT_TRUE(v_->copy_on_read_mode.load());
  EXPECT_NE(v_->tensor()->data(), other.data());
  EXPECT_EQ(v_->tensor()->NumElements(), 3);
  EXPECT_EQ(v_->tensor()->flat<float>()(2), 7);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
