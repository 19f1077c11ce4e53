// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a device keep the rules of stream groups? Each virtual that
// TensorFlow's executors call forwards to Base, the CUDA or emulated device,
// inside an OpScope; nothing else.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_H_

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/base/device_context.h"
#include "tensorflow/core/common_runtime/multistream/base/session_config.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_scope.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow::multistream {

// Launches ops on a group's device.
class GroupMember {
 public:
  virtual ~GroupMember() = default;

  // Device::Compute and ComputeAsync on this device's group, whatever run the
  // op is part of. `traits`: as for OpScope.
  virtual void ComputeHere(OpKernel* kernel, OpKernelContext* context,
                           const OpTraits* traits) = 0;
  virtual void ComputeAsyncHere(AsyncOpKernel* kernel, OpKernelContext* context,
                                const OpTraits* traits,
                                AsyncOpKernel::DoneCallback done) = 0;
};

// What executors need from the visible device of a GPU with stream groups.
class GroupLeader {
 public:
  virtual ~GroupLeader() = default;

  virtual GpuGroups* gpu_groups() const = 0;
  // The device of group `i`, the visible one for 0.
  virtual Device* group_device(int i) = 0;
  // Launches ops on group_device(i).
  virtual GroupMember* group_member(int i) = 0;
  // The session's threads for group `i`, or nullptr.
  virtual std::shared_ptr<StepThreads> session_threads(int i) const = 0;
  // The groups, policy and capture mode of the session on this GPU.
  virtual const SessionStreams& session_streams() const = 0;
  // Records steps of group `i`; nullptr if steps are not to be captured.
  virtual Recorder* recorder(int i) const = 0;
};

// One run of a graph at node level: launches each op on the device of the
// op's group.
class NodeRun {
 public:
  virtual ~NodeRun() = default;

  // The run that an op on `group`'s device is part of, or nullptr. Always
  // nullptr on a hidden device: executors know the leader's device only.
  static NodeRun* Of(StreamGroup* group, OpKernelContext* context) {
    if (!group->is_leader()) return nullptr;
    const StepRunner* runner = StepRunner::From(context->runner());
    return runner == nullptr ? nullptr : runner->nodes.get();
  }

  virtual void Compute(OpKernel* kernel, OpKernelContext* context) = 0;
  virtual void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                            AsyncOpKernel::DoneCallback done) = 0;
};

template <class Base>
class GroupDevice : public Base, public GroupMember, public GroupLeader {
 public:
  template <typename... Args>
  GroupDevice(GpuGroups* gpu, StreamGroup* group, Args&&... args)
      : Base(std::forward<Args>(args)...), gpu_(gpu), group_(group) {}

  GpuGroups* gpu_groups() const override { return gpu_; }
  Device* group_device(int i) override {
    return i == 0 ? this : hidden_[i - 1].get();
  }
  GroupMember* group_member(int i) override {
    return i == 0 ? this : hidden_[i - 1].get();
  }

  std::shared_ptr<StepThreads> session_threads(int i) const override {
    return session_threads_ == nullptr ? nullptr : session_threads_->OfGroup(i);
  }
  const SessionStreams& session_streams() const override {
    return session_streams_;
  }
  // Called on the leader.
  void SetSession(const SessionStreams& streams,
                  std::shared_ptr<const SessionThreads> threads,
                  std::shared_ptr<const StockThreads> stock_threads) {
    session_streams_ = streams;
    session_threads_ = std::move(threads);
    stock_threads_ = std::move(stock_threads);
  }

  // Called on the leader: adds the device of the next hidden group.
  void AddHidden(std::unique_ptr<GroupDevice> device) {
    device->leader_ = this;
    hidden_.push_back(std::move(device));
  }

  Recorder* recorder(int i) const override {
    return i < static_cast<int>(recorders_.size()) ? recorders_[i] : nullptr;
  }
  // Called on the leader: adds the recorder of the next group.
  template <class RecorderDevice>
  void AddRecorder(std::unique_ptr<RecorderDevice> device) {
    device->set_leader(this);
    gpu_->NoteRecorder();
    recorders_.push_back(device.get());
    recorder_devices_.push_back(std::move(device));
  }

  // Variables exist once, in the leader's resource manager.
  ResourceMgr* resource_manager() override {
    return leader_ == nullptr ? Base::resource_manager()
                              : leader_->resource_manager();
  }

  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    if (NodeRun* run = NodeRun::Of(group_, context)) {
      run->Compute(kernel, context);
    } else {
      ComputeHere(kernel, context, nullptr);
    }
  }

  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    if (NodeRun* run = NodeRun::Of(group_, context)) {
      run->ComputeAsync(kernel, context, std::move(done));
    } else {
      ComputeAsyncHere(kernel, context, nullptr, std::move(done));
    }
  }

  void ComputeHere(OpKernel* kernel, OpKernelContext* context,
                   const OpTraits* traits) override {
    if (MayMakeGathered(gpu_, kernel)) {
      GroupDevice* leader = leader_ == nullptr ? this : leader_;
      absl::Status status = MakeGathered(
          gpu_, group_, kernel, context,
          leader->GetAllocator(AllocatorAttributes()),
          [&](const Tensor& from, Tensor* to) {
            return leader->CopyOnStream(from, to, ContextOf(leader));
          });
      if (!status.ok()) {
        context->SetStatus(status);
        return;
      }
    }
    OpScope scope(gpu_, group_, kernel, context, traits);
    if (scope.must_copy_inputs()) {
      absl::Status status = scope.CopyForeignInputs(
          this->GetAllocator(AllocatorAttributes()),
          [&](const Tensor& from, Tensor* to) {
            return CopyOnStream(from, to, context->op_device_context());
          });
      if (!status.ok()) {
        context->SetStatus(status);
        return;
      }
    }
    scope.Enter();
    Base::Compute(kernel, context);
    scope.Launched();
  }

  void ComputeAsyncHere(AsyncOpKernel* kernel, OpKernelContext* context,
                        const OpTraits* traits,
                        AsyncOpKernel::DoneCallback done) override {
    // `done` may run the step's next ops on this thread, so the callback ends
    // the scope before it calls `done`. On another thread, the callback leaves
    // the scope to the end of this function. The op keeps its locks until done.
    auto scope = std::make_shared<std::optional<OpScope>>(
        std::in_place, gpu_, group_, kernel, context, traits);
    (*scope)->Enter();
    Base::ComputeAsync(kernel, context,
                       [scope, end = (*scope)->TakeEnd(), log = (*scope)->log(),
                        thread = std::this_thread::get_id(),
                        done = std::move(done)]() mutable {
                         if (log) log->Launched();
                         if (std::this_thread::get_id() == thread)
                           scope->reset();
                         end();
                         done();
                       });
    scope->reset();
  }

  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext* device_context,
                              StatusCallback done) override {
    auto holds = std::make_shared<Holds>(group_, /*step=*/nullptr);
    HoldIfForeign(group_, *from, holds.get());
    LogCopy(*from, *to);
    Base::CopyTensorInSameDevice(
        from, to, device_context,
        // Runs when the copy is enqueued, not when it has completed.
        [this, holds, done = std::move(done)](const absl::Status& status) {
          holds->Enqueued();
          if (group_->is_leader()) gpu_->NoteLeaderWork();
          done(status);
        });
  }

  // Enqueues a copy of `from` to `to` on this group's stream.
  absl::Status CopyOnStream(const Tensor& from, Tensor* to,
                            DeviceContext* device_context) {
    LogCopy(from, *to);
    absl::Status copied;
    absl::Notification issued;
    Base::CopyTensorInSameDevice(&from, to, device_context,
                                 [&](const absl::Status& s) {
                                   copied = s;
                                   issued.Notify();
                                 });
    issued.WaitForNotification();
    return copied;
  }

  // Called by an op, Sync waits for all groups of the GPU. Any other caller is
  // about to use a step's results, as TensorFlow is before it copies a tensor
  // to the host. The results are complete or on this device's own stream, so
  // the caller need not wait for other clients' steps on other groups.
  absl::Status Sync() override {
    absl::Status status = Base::Sync();
    if (GroupOnThread::Get() == nullptr) return status;
    for (const auto& hidden : hidden_) status.Update(hidden->Sync());
    return status;
  }

 private:
  void LogCopy(const Tensor& from, const Tensor& to) {
    if (Sanitizer* sanitizer = group_->sanitizer()) {
      sanitizer->Launch(group_->index(), "copy",
                        {{from.data(), from.TotalBytes(), false, "source"},
                         {to.data(), to.TotalBytes(), true, "copy"}});
    }
  }

  GpuGroups* const gpu_;
  StreamGroup* const group_;
  GroupDevice* leader_ = nullptr;  // nullptr: this is the leader
  std::vector<std::unique_ptr<GroupDevice>> hidden_;
  std::vector<Recorder*> recorders_;
  std::vector<std::unique_ptr<Device>> recorder_devices_;
  std::shared_ptr<const SessionThreads> session_threads_;
  std::shared_ptr<const StockThreads> stock_threads_;
  SessionStreams session_streams_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_DEVICE_H_
