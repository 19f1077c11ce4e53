/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/cuda_gpu.h"

#include <stdlib.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/multistream/driver_locks.h"
#include "tensorflow/core/common_runtime/multistream/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/group_device.h"
#include "tensorflow/core/common_runtime/multistream/group_executors.h"
#include "tensorflow/core/common_runtime/multistream/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/stream_group.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/gpu/gpu_init.h"

namespace tensorflow {
namespace multistream {
namespace {

struct CudaEvent : public StreamEvent {
  explicit CudaEvent(std::unique_ptr<se::Event> e) : event(std::move(e)) {}
  const std::unique_ptr<se::Event> event;
};

class CudaStreamGroup : public StreamGroup {
 public:
  using StreamGroup::StreamGroup;

  // To be called with each device made for the group. All have the same
  // streams, so only the first call changes anything.
  absl::Status Bind(BaseGPUDevice* device) {
    absl::MutexLock lock(&mu_);
    if (stream_ != nullptr) return absl::OkStatus();
    auto mark = device->executor()->CreateEvent();
    if (!mark.ok()) return mark.status();
    mark_ = *std::move(mark);
    executor_ = device->executor();
    events_ = device->tensorflow_accelerator_device_info()->event_mgr;
    stream_ = device->compute_stream();
    return absl::OkStatus();
  }

  void WaitFor(StreamGroup* other) override {
    Check(stream_->WaitFor(static_cast<CudaStreamGroup*>(other)->stream_));
  }
  void RecordMark() override { Check(stream_->RecordEvent(mark_.get())); }
  void WaitForMark(StreamGroup* other) override {
    Check(stream_->WaitFor(static_cast<CudaStreamGroup*>(other)->mark_.get()));
  }
  std::unique_ptr<StreamEvent> NewEvent() override {
    auto event = executor_->CreateEvent();
    Check(event.status());
    return std::make_unique<CudaEvent>(*std::move(event));
  }
  void Record(StreamEvent* event) override {
    Check(stream_->RecordEvent(static_cast<CudaEvent*>(event)->event.get()));
  }
  void WaitForEvent(StreamGroup*, StreamEvent* event) override {
    Check(stream_->WaitFor(static_cast<CudaEvent*>(event)->event.get()));
  }
  void ThenExecute(std::function<void()> f) override {
    events_->ThenExecute(stream_, std::move(f));
  }
  absl::Status Synchronize() override { return stream_->BlockHostUntilDone(); }

 private:
  // A wait that was not issued would let an op read what is not there yet.
  // CUDA refuses one only when its context is lost, and then every later call
  // fails too.
  void Check(const absl::Status& status) {
    if (!status.ok()) {
      LOG(FATAL) << "Stream group " << index() << " of GPU " << gpu()
                 << " cannot be ordered: " << status;
    }
  }

  absl::Mutex mu_;
  // Set once, by Bind, before any step.
  se::StreamExecutor* executor_ = nullptr;
  se::Stream* stream_ = nullptr;
  EventMgr* events_ = nullptr;
  std::unique_ptr<se::Event> mark_;
};

// The GPU device that TensorFlow makes, which no header declares.
class CudaDevice : public BaseGPUDevice {
 public:
  CudaDevice(const SessionOptions& options, const std::string& name,
             Bytes memory_limit, const DeviceLocality& locality,
             tsl::TfDeviceId tf_device_id, const std::string& description,
             Allocator* gpu_allocator, Allocator* cpu_allocator)
      : BaseGPUDevice(options, name, memory_limit, locality, tf_device_id,
                      description, gpu_allocator, cpu_allocator,
                      /*sync_every_op=*/false),
        force_gpu_compatible_(
            options.config.gpu_options().force_gpu_compatible()) {}

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    if (!attributes.on_host()) return gpu_allocator_;
    if (attributes.gpu_compatible() || force_gpu_compatible_) {
      return GPUProcessState::singleton()->GetGpuHostAllocator(
          /*options=*/{}, /*numa_node=*/0);
    }
    return cpu_allocator_;
  }

  // Nested calls must keep the runner of their step.
  thread::ThreadPool* tensorflow_device_thread_pool() override {
    return nullptr;
  }

 private:
  const bool force_gpu_compatible_;
};

using CudaGroupDevice = GroupDevice<CudaDevice>;

// The memory of the visible device, to those who ask for its use: all groups'.
class LeaderAllocator : public GroupAllocator {
 public:
  LeaderAllocator(Allocator* wrapped, GpuGroups* gpu, RegionOf region_of)
      : GroupAllocator(wrapped, gpu->leader(), std::move(region_of)),
        gpu_(gpu) {}

  std::optional<AllocatorStats> GetStats() override {
    std::optional<AllocatorStats> sum = GroupAllocator::GetStats();
    for (int i = 1; sum && i < gpu_->size(); ++i) {
      Allocator* allocator = gpu_->group(i)->allocator();
      if (allocator == nullptr) continue;
      std::optional<AllocatorStats> stats = allocator->GetStats();
      if (!stats) continue;
      sum->num_allocs += stats->num_allocs;
      sum->bytes_in_use += stats->bytes_in_use;
      sum->peak_bytes_in_use += stats->peak_bytes_in_use;
      if (sum->bytes_limit && stats->bytes_limit) {
        *sum->bytes_limit += *stats->bytes_limit;
      }
    }
    return sum;
  }
  bool ClearStats() override {
    bool cleared = GroupAllocator::ClearStats();
    for (int i = 1; i < gpu_->size(); ++i) {
      if (Allocator* allocator = gpu_->group(i)->allocator()) {
        cleared &= allocator->ClearStats();
      }
    }
    return cleared;
  }

 private:
  GpuGroups* const gpu_;
};

// An H200 had 50 to 60 MiB less for each group, with cuBLAS's workspace.
constexpr int64_t kHandlesMegabytes = 28;

MemoryInfo MemoryOf(int gpu) {
  MemoryInfo info = {0, 0, 0};
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!executor.ok() ||
      !(*executor)->DeviceMemoryUsage(&info.free_bytes, &info.total_bytes)) {
    return info;
  }
  // The reserve that TensorFlow's documentation of GPU memory describes: it
  // grows with the size of the CUDA libraries for newer chips.
  const int major =
      (*executor)->GetDeviceDescription().cuda_compute_capability().major;
  const int64_t mb = info.free_bytes < (int64_t{1} << 31) ? 225
                     : major <= 6                         ? 500
                     : major <= 7                         ? 1050
                     : major <= 8                         ? 1536
                                                          : 1800;
  info.reserved_bytes = mb << 20;
  // cuBLAS's default workspace (its documentation, cublasSetWorkspace), and
  // the handles.
  const int64_t workspace_mb = major == 9 || major == 10 ? 32
                               : major >= 12             ? 12
                                                         : 4;
  info.reserved_per_group_bytes = (workspace_mb + kHandlesMegabytes) << 20;
  if (info.reserved_bytes >= info.free_bytes) info.reserved_bytes = 0;
  return info;
}

class CudaGpuFactory : public BaseGPUDeviceFactory {
 public:
  explicit CudaGpuFactory(const Options& options) : options_(options) {}

  // Python asks for no GPU where this lists none, and would run without a word.
  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    const size_t before = devices->size();
    absl::Status status = BaseGPUDeviceFactory::ListPhysicalDevices(devices);
    if (!status.ok()) VLOG(1) << "No GPU: " << status;
    if (status.ok() && devices->size() > before) return status;
    return NoGpuError(options_);
  }

  absl::Status CreateDevices(
      const SessionOptions& options, const std::string& name_prefix,
      std::vector<std::unique_ptr<Device>>* devices) override {
    absl::MutexLock lock(&mu_);
    absl::StatusOr<std::vector<int>> physical = PhysicalGpus();
    if (!physical.ok()) return physical.status();
    absl::StatusOr<std::vector<GpuSizes>> sizes =
        PlanGroupSizes(options_, options.config, *physical,
                       [this](int gpu) { return FirstMemoryOf(gpu); });
    if (!sizes.ok()) return sizes.status();
    if (sizes->empty()) return absl::OkStatus();

    // The leaders come first, so that their TensorFlow ids are those of their
    // names.
    specs_.clear();
    int most = 0;
    for (const GpuSizes& size : *sizes) most = std::max(most, size.groups);
    for (int i = 0; i < most; ++i) {
      for (int k = 0; k < static_cast<int>(sizes->size()); ++k) {
        if (i >= (*sizes)[k].groups) continue;
        GpuGroups* gpu =
            RegisterGpuGroups((*sizes)[k].gpu, NewGroups((*sizes)[k]));
        if (gpu->size() != (*sizes)[k].groups) {
          return absl::FailedPreconditionError(absl::StrCat(
              "GPU ", (*sizes)[k].gpu, " has ", gpu->size(),
              " stream groups in this process, and a session asks for ",
              (*sizes)[k].groups,
              ". Groups are made once per process: list the visible GPUs in "
              "one order in all sessions."));
        }
        specs_.push_back(
            {gpu, gpu->group(i), absl::StrCat(name_prefix, "/device:GPU:", k)});
      }
    }
    std::vector<std::unique_ptr<Device>> all;
    absl::Status status = BaseGPUDeviceFactory::CreateDevices(
        WithLogicalDevices(options, *sizes), name_prefix, &all);
    ChooseExecutor(0, 0);
    if (!status.ok()) return status;
    if (all.size() != specs_.size()) {
      return absl::InternalError(
          absl::StrCat("TensorFlow made ", all.size(), " of ", specs_.size(),
                       " devices for the stream groups"));
    }
    if (most > 1 && options_.spin_locks) ReplaceLocksInCudaDriver();
    const auto threads = SessionThreads::Of(options.config);
    for (size_t i = 0; i < all.size(); ++i) {
      auto* device = static_cast<CudaGroupDevice*>(all[i].release());
      std::unique_ptr<CudaGroupDevice> owned(device);
      auto* group = static_cast<CudaStreamGroup*>(specs_[i].group);
      status = group->Bind(device);
      if (!status.ok()) return status;
      if (group->is_leader()) {
        owned->set_session_threads(threads);
        devices->push_back(std::move(owned));
      } else {
        const size_t k = LeaderOf(specs_[i], devices->size(), sizes->size());
        static_cast<CudaGroupDevice*>((*devices)[k].get())
            ->AddHidden(std::move(owned));
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Spec {
    GpuGroups* gpu;
    StreamGroup* group;
    std::string device_name;
  };

  static std::unique_ptr<GpuGroups> NewGroups(const GpuSizes& size) {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < size.groups; ++i) {
      groups.push_back(std::make_unique<CudaStreamGroup>(size.gpu, i));
    }
    return std::make_unique<GpuGroups>(std::move(groups));
  }

  // Index in `devices` of the leader of a hidden group. The leaders are its
  // last `gpus` entries, in the order of the specs.
  size_t LeaderOf(const Spec& spec, size_t devices, size_t gpus) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t k = 0;
    while (specs_[k].gpu != spec.gpu) ++k;
    return devices - gpus + k;
  }

  absl::StatusOr<std::vector<int>> PhysicalGpus() {
    std::vector<std::string> names;
    absl::Status status = BaseGPUDeviceFactory::ListPhysicalDevices(&names);
    // Without a driver there is no GPU, which PlanGroupSizes says better.
    if (!status.ok()) VLOG(1) << "No GPU: " << status;
    std::vector<int> gpus;
    for (const std::string& name : names) {
      int gpu;
      if (!absl::SimpleAtoi(name.substr(name.rfind(':') + 1), &gpu)) {
        return absl::InternalError(
            absl::StrCat("Unexpected physical device name ", name));
      }
      gpus.push_back(gpu);
    }
    return gpus;
  }

  // Free memory as it was before the groups' allocators took it: later
  // sessions share these allocators.
  MemoryInfo FirstMemoryOf(int gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto [found, added] = memory_.try_emplace(gpu);
    if (added) found->second = MemoryOf(gpu);
    return found->second;
  }

  static SessionOptions WithLogicalDevices(const SessionOptions& options,
                                           const std::vector<GpuSizes>& sizes) {
    SessionOptions split = options;
    GPUOptions* gpu_options = split.config.mutable_gpu_options();
    // More memory than the GPU has means unified memory, which the fraction
    // can no longer say.
    if (gpu_options->per_process_gpu_memory_fraction() > 1) {
      gpu_options->mutable_experimental()->set_use_unified_memory(true);
    }
    gpu_options->clear_per_process_gpu_memory_fraction();
    std::vector<int> visible;
    auto* logical =
        gpu_options->mutable_experimental()->mutable_virtual_devices();
    logical->Clear();
    for (const GpuSizes& size : sizes) {
      visible.push_back(size.gpu);
      auto* devices = logical->Add();
      for (int i = 0; i < size.groups; ++i) {
        devices->add_memory_limit_mb(
            static_cast<float>(size.group_bytes >> 20));
        devices->add_device_ordinal(i);
      }
    }
    gpu_options->set_visible_device_list(absl::StrJoin(visible, ","));
    (*split.config.mutable_device_count())["GPU"] =
        static_cast<int>(sizes.size());
    return split;
  }

  std::unique_ptr<BaseGPUDevice> CreateGPUDevice(
      const SessionOptions& options, const std::string& name,
      Bytes memory_limit, const DeviceLocality& locality,
      tsl::TfDeviceId tf_device_id, const std::string& description,
      Allocator* gpu_allocator, Allocator* cpu_allocator) override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {  // called by CreateDevices, under mu_
    const Spec& spec = specs_[tf_device_id.value()];
    ChooseExecutor(spec.group->gpu(), spec.group->index());
    if (spec.group->allocator() == nullptr) {
      auto region_of = [gpu = spec.group->gpu()](const void* address,
                                                 size_t bytes) {
        return RegionOf(gpu, address, bytes);
      };
      spec.group->set_allocator(
          new GroupAllocator(gpu_allocator, spec.group, region_of));
      if (spec.group->is_leader()) {
        visible_allocators_[spec.group] =
            new LeaderAllocator(gpu_allocator, spec.gpu, region_of);
      }
    }
    Allocator* allocator = spec.group->is_leader()
                               ? visible_allocators_[spec.group]
                               : spec.group->allocator();
    const auto bytes =
        static_cast<Bytes>(memory_limit.value() *
                           (spec.group->is_leader() ? spec.gpu->size() : 1));
    return std::make_unique<CudaGroupDevice>(
        spec.gpu, spec.group, options, spec.device_name, bytes, locality,
        tf_device_id, description, allocator, cpu_allocator);
  }

  static std::pair<const void*, size_t> RegionOf(int gpu, const void* address,
                                                 size_t bytes) {
    auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
    if (executor.ok()) {
      auto range = (*executor)->GetMemoryRange(
          se::DeviceAddressBase(const_cast<void*>(address), bytes));
      if (range.ok()) return {range->opaque(), range->size()};
    }
    return {address, bytes};
  }

  const Options options_;
  absl::Mutex mu_;
  std::vector<Spec> specs_ ABSL_GUARDED_BY(mu_);  // by TensorFlow device id
  std::map<int, MemoryInfo> memory_ ABSL_GUARDED_BY(mu_);
  // Never deleted, as TensorFlow's own allocators are.
  std::map<StreamGroup*, Allocator*> visible_allocators_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<DeviceFactory> NewCudaGpuFactory(const Options& options) {
  return std::make_unique<CudaGpuFactory>(options);
}

}  // namespace multistream
}  // namespace tensorflow
