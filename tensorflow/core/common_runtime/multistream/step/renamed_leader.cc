// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/renamed_leader.h"

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/const_init.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {
namespace {

// A hidden group's device, with the name and the resources of the session's
// RenamedDevice.
class RenamedGroupDevice : public Device {
 public:
  RenamedGroupDevice(Device* renamed, Device* hidden)
      : Device(renamed->env(), renamed->attributes()),
        renamed_(renamed),
        hidden_(hidden) {}

  ResourceMgr* resource_manager() override {
    return renamed_->resource_manager();
  }

  const DeviceBase* UnderlyingDevice() const override { return hidden_; }
  DeviceBase* UnderlyingDevice() override { return hidden_; }

  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    hidden_->Compute(kernel, context);
  }
  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    hidden_->ComputeAsync(kernel, context, std::move(done));
  }
  absl::Status Sync() override { return hidden_->Sync(); }
  absl::Status MaybeRewriteGraph(std::unique_ptr<Graph>* graph) override {
    return hidden_->MaybeRewriteGraph(graph);
  }
  absl::Status TryGetDeviceContext(DeviceContext** out) override {
    return hidden_->TryGetDeviceContext(out);
  }
  bool IsLocal() const override { return hidden_->IsLocal(); }
  bool IsRemoteCallAllowed() const override {
    return hidden_->IsRemoteCallAllowed();
  }

  const CpuWorkerThreads* tensorflow_cpu_worker_threads() const override {
    return renamed_->tensorflow_cpu_worker_threads();
  }
  bool has_eigen_cpu_device() const override {
    return hidden_->has_eigen_cpu_device();
  }
  const Eigen::ThreadPoolDevice* eigen_cpu_device() override {
    return renamed_->eigen_cpu_device();
  }
  thread::ThreadPool* tensorflow_device_thread_pool() override {
    return hidden_->tensorflow_device_thread_pool();
  }

  const AcceleratorDeviceInfo* tensorflow_accelerator_device_info()
      const override {
    return hidden_->tensorflow_accelerator_device_info();
  }
  PerOpGpuDevice* MakeGpuDevice() override { return hidden_->MakeGpuDevice(); }
  absl::Status ReinitializeGpuDevice(OpKernelContext* context,
                                     PerOpGpuDevice* device, DeviceContext* dc,
                                     Allocator* allocator) override {
    return hidden_->ReinitializeGpuDevice(context, device, dc, allocator);
  }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return hidden_->GetAllocator(attributes);
  }
  Allocator* GetScopedAllocator(AllocatorAttributes attributes,
                                int64_t step_id) override {
    return hidden_->GetScopedAllocator(attributes, step_id);
  }
  ScopedAllocatorMgr* GetScopedAllocatorMgr() const override {
    return hidden_->GetScopedAllocatorMgr();
  }
  absl::Status MakeTensorFromProto(const TensorProto& proto,
                                   const AllocatorAttributes attributes,
                                   Tensor* tensor) override {
    return hidden_->MakeTensorFromProto(proto, attributes, tensor);
  }
  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext* context,
                              StatusCallback done) override {
    hidden_->CopyTensorInSameDevice(from, to, context, std::move(done));
  }

 private:
  Device* const renamed_;
  Device* const hidden_;
};

class RenamedLeader : public GroupLeader {
 public:
  RenamedLeader(Device* renamed, GroupLeader* leader)
      : renamed_(renamed), leader_(leader) {
    for (int i = 1; i < leader->gpu_groups()->size(); ++i) {
      hidden_.push_back(std::make_unique<RenamedGroupDevice>(
          renamed, leader->group_device(i)));
    }
  }

  GpuGroups* gpu_groups() const override { return leader_->gpu_groups(); }
  Device* group_device(int i) override {
    return i == 0 ? renamed_ : hidden_[i - 1].get();
  }
  GroupMember* group_member(int i) override { return leader_->group_member(i); }
  std::shared_ptr<StepThreads> session_threads(int i) const override {
    return leader_->session_threads(i);
  }
  const SessionStreams& session_streams() const override {
    return leader_->session_streams();
  }
  // No capture: recorders are devices with the leader's own name.
  Recorder* recorder(int i) const override { return nullptr; }

 private:
  Device* const renamed_;
  GroupLeader* const leader_;
  std::vector<std::unique_ptr<Device>> hidden_;  // of groups 1 and up
};

}  // namespace

GroupLeader* LeaderOf(Device* device) {
  if (auto* leader = dynamic_cast<GroupLeader*>(device)) return leader;
  auto* leader = dynamic_cast<GroupLeader*>(device->UnderlyingDevice());
  if (leader == nullptr) return nullptr;
  // Never deleted: TensorFlow does not report the end of a session's devices,
  // and its resources may still name them. Later sessions' devices get the same
  // addresses, and so reuse the entries.
  static absl::Mutex mu(absl::kConstInit);
  using Key = std::tuple<Device*, GroupLeader*, std::string>;
  static auto* leaders = new std::map<Key, std::unique_ptr<RenamedLeader>>;
  absl::MutexLock lock(&mu);
  std::unique_ptr<RenamedLeader>& found =
      (*leaders)[Key(device, leader, device->name())];
  if (found == nullptr) found = std::make_unique<RenamedLeader>(device, leader);
  return found.get();
}

}  // namespace tensorflow::multistream
