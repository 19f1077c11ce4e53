// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On which device do the ops of a step run while the step is recorded? On a
// device like the group's (Base: CUDA or emulated), without the rules of stream
// groups, with its own streams, and with the recording's memory. The device
// finds out what memory each op uses, and tells an OpWatcher. Possible uses
// count, as a recording must wait for them; the sanitizer hears only of sure
// accesses, by OpAccesses (ops/op_accesses.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

// An op that is launched while a step is recorded. Before the launch, uses are
// unknown, and so is the result of `elementwise`.
struct LaunchedOp {
  std::string name;
  std::vector<MemoryUse> uses;
  std::optional<ElementwiseOp> elementwise;
  // Since the op before it: allocations, and the numbers of freed ones.
  std::vector<Allocation> made;
  std::vector<size_t> freed;
  bool alone = false;  // the uses stay unknown
};

// Told of each such op, on one thread.
class OpWatcher {
 public:
  virtual ~OpWatcher() = default;
  virtual void Begins(const LaunchedOp& op) = 0;
  virtual void Launched(LaunchedOp op) = 0;
};

// The memory uses of one op. A use that may be a write counts as a write.
class OpUses {
 public:
  // Call before the op's launch: notes the inputs. `memory` is the recording's.
  OpUses(const RecordingMemory* memory, const OpKernel* kernel,
         OpKernelContext* context);

  // Call after the launch: returns all uses, including outputs and memory that
  // the op has `allocated`.
  std::vector<MemoryUse> WithMade(OpKernelContext* context,
                                  absl::Span<const MemoryUse> allocated) &&;

 private:
  bool IsOnHost(MemoryType type, const Tensor& tensor) const;
  void Add(Tensor tensor, bool writes);
  void AddElements(const Tensor& list);

  const RecordingMemory* const memory_;
  std::vector<MemoryUse> uses_;
};

template <class Base>
class RecordingDevice : public Base {
 public:
  template <typename... Args>
  explicit RecordingDevice(StreamGroup* group, Args&&... args)
      : Base(std::forward<Args>(args)...), group_(group) {}

  StreamGroup* group() const { return group_; }

  // The most ops of a recording that run side by side. 1: no branches.
  int most_branches() const { return most_branches_; }
  void set_most_branches(int branches) { most_branches_ = branches; }

  // Whether elementwise ops become larger kernels (capture/fuse/fused_ops.h).
  bool fuses() const { return fuses_; }
  void set_fuses(bool fuses) { fuses_ = fuses; }

  // Sets the leader of the group's GPU.
  void set_leader(Device* leader) { leader_ = leader; }

  // Variables exist once, in the leader's resource manager.
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

  // The allocator of the group or host, even during a recording.
  Allocator* OwnAllocator(AllocatorAttributes attributes) {
    return Base::GetAllocator(attributes);
  }

  // Inputs of more than kMostDims dimensions are refused: TensorFlow's kernels
  // copy them in ways that must not be recorded. Convolution runners are shared
  // with the group, as both have the same StreamExecutor (GroupOnThread).
  // Variables must not move between runs (NoteRead). After a failed op no other
  // op runs: an op that waits for the GPU ends the CUDA capture, and many
  // kernels abort the process on the next launch.
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
    // The op's status may lack the reason, or hide the failure.
    const absl::Status status = check_ ? check_() : absl::OkStatus();
    if (status.ok()) return;
    failure_ = absl::FailedPreconditionError(
        absl::StrCat(kernel->type_string(), " '", kernel->name(),
                     "' cannot be recorded: ", status.message()));
    context->SetStatus(failure_);
  }
  static constexpr int kMostDims = 7;

  // The `apart_bytes` of a RecordingMemory for this device.
  size_t apart_bytes() const {
    return most_branches_ > 1 ? RecordingMemory::kApartBytes : 0;
  }

  // While this object lives, ops of the device get `memory`.
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

    // From now on tells `watcher`, if not nullptr, of the ops, on the calling
    // thread.
    void Watch(OpWatcher* watcher) { device_->watcher_ = watcher; }
    // From now on an op fails if `check` fails after it; nullptr: no check.
    void CheckAfterOps(std::function<absl::Status()> check) {
      device_->check_ = std::move(check);
    }
    // Status of the first op that failed.
    const absl::Status& failure() const { return device_->failure_; }

   private:
    RecordingDevice* const device_;
    const absl::MutexLock lock_;
  };

 protected:
  // Tells the watcher of an op that has run, of which nothing is known.
  void NoteUnknown(const std::string& name) {
    RecordingMemory* memory = memory_.load(std::memory_order_acquire);
    if (memory == nullptr || watcher_ == nullptr) return;
    LaunchedOp op{name};
    op.made = memory->TakeGiven();
    op.freed = memory->TakeFreed();
    op.alone = true;
    watcher_->Launched(std::move(op));
  }

 private:
  // `memory` is nullptr while nothing is being recorded.
  void ComputeOp(OpKernel* kernel, OpKernelContext* context,
                 RecordingMemory* memory) {
    if (memory != nullptr) {
      ForEachVariable(context, [memory](const ResourceHandle&, Var* variable) {
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
    ElementwiseWatch elementwise(*kernel, context);
    LaunchedOp op{kernel->name(), {}, elementwise.before()};
    op.made = memory->TakeGiven();
    watcher_->Begins(op);
    Base::Compute(kernel, context);
    std::vector<MemoryUse> given;
    for (const Allocation& made : memory->TakeGiven()) {
      given.push_back({made.begin, made.end, /*writes=*/true});
      op.made.push_back(made);
    }
    op.elementwise = std::move(elementwise).After(context);
    op.uses = std::move(uses).WithMade(context, given);
    op.freed = memory->TakeFreed();
    watcher_->Launched(std::move(op));
  }

  StreamGroup* const group_;
  Device* leader_ = nullptr;
  int most_branches_ = 1;
  bool fuses_ = false;
  absl::Mutex mu_;
  std::atomic<RecordingMemory*> memory_{nullptr};
  // The next three are used by the recording thread only.
  OpWatcher* watcher_ = nullptr;
  std::function<absl::Status()> check_;
  absl::Status failure_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_DEVICE_H_
