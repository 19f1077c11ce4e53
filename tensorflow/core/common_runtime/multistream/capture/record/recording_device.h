// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On which device do the ops of a step run while it is recorded? On one like
// its group's, CUDA's or the emulated one (Base), without the rules of stream
// groups: it has streams of its own, and memory of the recording.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/op_uses.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_variables.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_on_thread.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"

namespace tensorflow {
namespace multistream {

template <class Base>
class RecordingDevice : public Base {
 public:
  template <typename... Args>
  explicit RecordingDevice(StreamGroup* group, Args&&... args)
      : Base(std::forward<Args>(args)...), group_(group) {}

  StreamGroup* group() const { return group_; }

  // How many ops of a recording run side by side, at most; 1: it is one stream
  // inside.
  int most_branches() const { return most_branches_; }
  void set_most_branches(int branches) { most_branches_ = branches; }

  // Of the group's GPU.
  void set_leader(Device* leader) { leader_ = leader; }

  // Variables exist once, with the leader.
  ResourceMgr* resource_manager() override {
    return leader_ == nullptr ? Base::resource_manager()
                              : leader_->resource_manager();
  }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    RecordingMemory* memory = memory_.load(std::memory_order_acquire);
    if (memory == nullptr) return Base::GetAllocator(attributes);
    if (!attributes.on_host()) return memory->device();
    return attributes.gpu_compatible() ? memory->pinned()
                                       : Base::GetAllocator(attributes);
  }

  // Memory of the group, or of the host, whoever records.
  Allocator* OwnAllocator(AllocatorAttributes attributes) {
    return Base::GetAllocator(attributes);
  }

  // TensorFlow's kernels copy tensors of more dimensions in ways that must not
  // be recorded. A variable must be where it was. Convolutions' runners are
  // those of the group, whose StreamExecutor the recorder has. After an op that
  // failed no other one runs: it may have ended the capture, as one does that
  // waits for the GPU, and then many kernels end the process.
  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    const GroupOnThread on_thread(group_);
    RecordingMemory* memory = memory_.load(std::memory_order_acquire);
    if (memory == nullptr) {
      ComputeOp(kernel, context, nullptr);
      return;
    }
    if (!failure_.ok()) {
      context->SetStatus(absl::CancelledError("an op before it has failed"));
      return;
    }
    ComputeOp(kernel, context, memory);
    failure_ = context->status();
    // The op may not know why it failed, or that it did.
    const absl::Status status = check_ ? check_() : absl::OkStatus();
    if (status.ok()) return;
    failure_ = absl::FailedPreconditionError(
        absl::StrCat(kernel->type_string(), " '", kernel->name(),
                     "' cannot be recorded: ", status.message()));
    context->SetStatus(failure_);
  }
  static constexpr int kMostDims = 7;

  // Of a recording's memory.
  size_t apart_bytes() const {
    return most_branches_ > 1 ? RecordingMemory::kApartBytes : 0;
  }

  // While it lives, ops of the device get `memory`.
  class Uses {
   public:
    Uses(RecordingDevice* device, RecordingMemory* memory)
        : device_(device), lock_(&device->mu_) {
      device_->failure_ = absl::OkStatus();
      device_->memory_.store(memory, std::memory_order_release);
    }
    ~Uses() {
      device_->watcher_ = nullptr;
      device_->check_ = nullptr;
      device_->memory_.store(nullptr, std::memory_order_release);
    }

    // Tells `watcher` of the ops from now on, on the thread that calls it;
    // nullptr: nobody.
    void Watch(OpWatcher* watcher) { device_->watcher_ = watcher; }
    // Of what must hold after each op from now on; nullptr: nothing.
    void CheckAfterOps(std::function<absl::Status()> check) {
      device_->check_ = std::move(check);
    }
    // Of the first op that failed.
    const absl::Status& failure() const { return device_->failure_; }

   private:
    RecordingDevice* const device_;
    const absl::MutexLock lock_;
  };

 private:
  // `memory`: of the recording that is made; nullptr: none is.
  void ComputeOp(OpKernel* kernel, OpKernelContext* context,
                 RecordingMemory* memory) {
    if (memory != nullptr) {
      ForEachVariable(context, [memory](Var* variable) {
        tf_shared_lock lock(*variable->mu());
        memory->NoteRead(variable->tensor()->data());
      });
    }
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (!context->has_input(i) || context->input(i).dims() <= kMostDims) {
        continue;
      }
      context->SetStatus(absl::FailedPreconditionError(absl::StrCat(
          kernel->type_string(), " '", kernel->name(), "' has an input of ",
          context->input(i).dims(), " dimensions")));
      return;
    }
    if (memory == nullptr || watcher_ == nullptr) {
      Base::Compute(kernel, context);
      return;
    }
    OpUses uses(memory, kernel, context);
    memory->TakeGiven();
    watcher_->Begins(kernel->name());
    Base::Compute(kernel, context);
    std::vector<MemoryUse> given;
    for (const auto& [address, bytes] : memory->TakeGiven()) {
      given.push_back(UseOf(address, bytes, /*writes=*/true));
    }
    watcher_->Launched(kernel->name(),
                       std::move(uses).WithMade(context, given));
  }

  StreamGroup* const group_;
  Device* leader_ = nullptr;
  int most_branches_ = 1;
  absl::Mutex mu_;
  std::atomic<RecordingMemory*> memory_{nullptr};
  // Of the thread that records.
  OpWatcher* watcher_ = nullptr;
  std::function<absl::Status()> check_;
  absl::Status failure_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_
