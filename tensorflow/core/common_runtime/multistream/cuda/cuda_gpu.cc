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

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_gpu.h"

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
#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tensorflow/core/common_runtime/multistream/config/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/config/session_config.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_executors.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/stream/fork_state.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/event_based_timer.h"
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
  std::function<double()> StartTimer() override {
    auto timer = stream_->CreateEventBasedTimer(/*use_delay_kernel=*/false);
    if (!timer.ok()) return StreamGroup::StartTimer();
    return [timer = std::shared_ptr<se::EventBasedTimer>(*std::move(timer))] {
      auto elapsed = timer->GetElapsedDuration();
      return elapsed.ok() ? absl::ToDoubleMicroseconds(*elapsed) : 0.0;
    };
  }

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

// TensorFlow with merged streams calls a copy from the host done when the
// compute stream has been given it, and other groups would use what is not
// there yet. Here it is done when the stream has passed it.
class MergedContext : public GPUDeviceContext {
 public:
  MergedContext(const GPUDeviceContext& stock, StreamGroup* group)
      : GPUDeviceContext(
            stock.stream_id(), stock.stream(), stock.host_to_device_stream(),
            stock.device_to_host_stream(), {stock.device_to_device_stream(0)},
            stock.host_memory_allocator()),
        group_(group) {}

  void CopyCPUTensorToDevice(const Tensor* from, Device* device, Tensor* to,
                             StatusCallback done,
                             bool sync_dst_compute) const override {
    GPUDeviceContext::CopyCPUTensorToDevice(
        from, device, to,
        [group = group_, done = std::move(done)](const absl::Status& status) {
          group->WhenPassed([done, status] { done(status); },
                            /*host_waits=*/true);
        },
        sync_dst_compute);
  }

 private:
  StreamGroup* const group_;
};

// The GPU device that TensorFlow makes, which no header declares.
class CudaDevice : public BaseGPUDevice {
 public:
  // `pinned`: host memory for copies; nullptr: what all devices share.
  CudaDevice(const SessionOptions& options, const std::string& name,
             Bytes memory_limit, const DeviceLocality& locality,
             tsl::TfDeviceId tf_device_id, const std::string& description,
             Allocator* gpu_allocator, Allocator* cpu_allocator,
             Allocator* pinned)
      : BaseGPUDevice(options, name, memory_limit, locality, tf_device_id,
                      description, gpu_allocator, cpu_allocator,
                      /*sync_every_op=*/false),
        force_gpu_compatible_(
            options.config.gpu_options().force_gpu_compatible()),
        pinned_(pinned) {}

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    if (!attributes.on_host()) return gpu_allocator_;
    if (attributes.gpu_compatible() || force_gpu_compatible_) {
      if (pinned_ != nullptr) return pinned_;
      return GPUProcessState::singleton()->GetGpuHostAllocator(
          /*options=*/{}, /*numa_node=*/0);
    }
    return cpu_allocator_;
  }

  // Nested calls must keep the runner of their step.
  thread::ThreadPool* tensorflow_device_thread_pool() override {
    return nullptr;
  }

  // To be called once the device and `group`, which is the device's, are ready.
  void SetContext(multistream::StreamGroup* group) {
    if (group->context() == 0) return;
    own_info_ = *tensorflow_accelerator_device_info();
    // TensorFlow keeps FFT plans, which belong to a context, by this number;
    // generated_kernels.h tells the context by it.
    own_info_.gpu_id = NumberOfContext(own_info_.gpu_id, group->context());
    set_tensorflow_accelerator_device_info(&own_info_);
  }

  // The same, if streams are merged.
  void CompleteMergedCopies(multistream::StreamGroup* group) {
    merged_group_ = group;
    own_info_ = *tensorflow_accelerator_device_info();
    merged_context_.reset(new MergedContext(
        *static_cast<GPUDeviceContext*>(own_info_.default_context), group));
    own_info_.default_context = merged_context_.get();
    set_tensorflow_accelerator_device_info(&own_info_);
  }

  // Copies in a context that TensorFlow has for itself.
  absl::Status MakeTensorFromProto(const TensorProto& proto,
                                   AllocatorAttributes attributes,
                                   Tensor* tensor) override {
    absl::Status status =
        BaseGPUDevice::MakeTensorFromProto(proto, attributes, tensor);
    if (merged_group_ != nullptr && !attributes.on_host()) {
      status.Update(merged_group_->Block());
    }
    return status;
  }

 private:
  const bool force_gpu_compatible_;
  Allocator* const pinned_;
  DeviceBase::AcceleratorDeviceInfo own_info_;
  core::RefCountPtr<DeviceContext> merged_context_;
  multistream::StreamGroup* merged_group_ = nullptr;
};

using CudaGroupDevice = GroupDevice<CudaDevice>;

class CudaGpuFactory : public BaseGPUDeviceFactory {
 public:
  // Python asks for no GPU where this lists none, and would run without a word.
  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    const size_t before = devices->size();
    absl::Status status = BaseGPUDeviceFactory::ListPhysicalDevices(devices);
    if (!status.ok()) VLOG(1) << "No GPU: " << status;
    if (status.ok() && devices->size() > before) return status;
    return NoGpuError(*ProcessOptions());
  }

  absl::Status CreateDevices(
      const SessionOptions& options, const std::string& name_prefix,
      std::vector<std::unique_ptr<Device>>* devices) override {
    if (GroupsAreOfParent()) {
      return WantsGpus(options.config) ? GroupsAreOfParentError()
                                       : absl::OkStatus();
    }
    // Whoever lists devices comes here without AddDevices of ours.
    const MakingGroups making;
    absl::MutexLock lock(&mu_);
    options_ = *ProcessOptions();
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
    std::vector<SessionStreams> streams;
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
        if (i == 0) {
          auto of_gpu = StreamsOfSession(options.config, options_, k,
                                         (*sizes)[k].gpu, gpu->size());
          if (!of_gpu.ok()) return of_gpu.status();
          streams.push_back(*of_gpu);
        }
        gpu->group(i)->set_context((*sizes)[k].contexts[i]);
        specs_.push_back(
            {gpu, gpu->group(i), absl::StrCat(name_prefix, "/device:GPU:", k)});
      }
    }
    std::vector<std::unique_ptr<Device>> all;
    absl::Status status = BaseGPUDeviceFactory::CreateDevices(
        WithLogicalDevices(options, *sizes), name_prefix, &all);
    ChooseExecutor(0, 0);
    if (!memory_status_.ok()) return memory_status_;
    if (!status.ok() && !options_.priorities.empty()) {
      // TensorFlow checks them, as the priorities of virtual devices.
      errors::AppendToMessage(
          &status, absl::StrCat("This is with ", kPrioritiesVariable, "=",
                                absl::StrJoin(options_.priorities, ",")));
    }
    if (!status.ok()) return status;
    if (all.size() != specs_.size()) {
      return absl::InternalError(
          absl::StrCat("TensorFlow made ", all.size(), " of ", specs_.size(),
                       " devices for the stream groups"));
    }
    if (most > 1 && options_.spin_locks) ReplaceLocksInCudaDriver();
    WarnOfContextsInTurn();
    const auto threads = SessionThreads::Of(options.config);
    std::map<const se::StreamExecutor*, int> first_with;
    for (size_t i = 0; i < all.size(); ++i) {
      auto* device = static_cast<CudaGroupDevice*>(all[i].release());
      std::unique_ptr<CudaGroupDevice> owned(device);
      auto* group = static_cast<CudaStreamGroup*>(specs_[i].group);
      status = group->Bind(device);
      if (!status.ok()) return status;
      group->set_executor(
          first_with.try_emplace(device->executor(), group->index())
              .first->second);
      owned->SetContext(group);
      if (options_.merge_streams) owned->CompleteMergedCopies(group);
      if (group->is_leader()) {
        owned->set_session_threads(threads);
        owned->set_session_streams(streams[i]);
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

  void WarnOfContextsInTurn() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const Spec& spec : specs_) {
      if (spec.group->context() == 0 ||
          ContextsRunSideBySide(spec.group->gpu()).value_or(true)) {
        continue;
      }
      LOG_FIRST_N(WARNING, 1)
          << kContextCountVariable << "="
          << absl::StrJoin(options_.context_counts, ",")
          << " spreads the stream groups of GPU " << spec.group->gpu()
          << " over several CUDA contexts, and without NVIDIA's Multi-Process "
             "Service only one of them runs at a time, which is slower than "
             "one context. Start it with: nvidia-cuda-mps-control -d";
      return;
    }
  }

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
    if (added) found->second = CudaMemoryInfo(gpu);
    return found->second;
  }

  SessionOptions WithLogicalDevices(const SessionOptions& options,
                                    const std::vector<GpuSizes>& sizes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
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
        if (!options_.priorities.empty()) {
          devices->add_priority(options_.Priority(i));
        }
      }
    }
    if (options_.merge_streams) {
      auto* merge =
          gpu_options->mutable_experimental()->mutable_stream_merge_options();
      merge->set_merge_host_to_device_stream(true);
      merge->set_merge_device_to_host_stream(true);
      merge->set_merge_device_to_device_stream(true);
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
    ChooseExecutor(spec.group->gpu(), spec.group->index(),
                   spec.group->context());
    const auto bytes_of_gpu =
        static_cast<int64_t>(memory_limit.value()) * spec.gpu->size();
    if (spec.group->allocator() == nullptr) {
      memory_status_.Update(MakeAllocators(spec, options.config.gpu_options(),
                                           bytes_of_gpu, gpu_allocator));
    }
    Allocator* allocator = spec.group->is_leader()
                               ? visible_allocators_[spec.group]
                               : spec.group->allocator();
    return std::make_unique<CudaGroupDevice>(
        spec.gpu, spec.group, options, spec.device_name,
        spec.group->is_leader() ? Bytes(bytes_of_gpu) : memory_limit, locality,
        tf_device_id, description, allocator, cpu_allocator,
        spec.group->host_allocator());
  }

  // For the first device of a group. `stock`: what TensorFlow made for it. On
  // an error, what the group has still does for a device.
  absl::Status MakeAllocators(const Spec& spec, const GPUOptions& gpu_options,
                              int64_t bytes_of_gpu, Allocator* stock)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    StreamGroup* group = spec.group;
    auto set = [&](Allocator* wrapped, auto memory) {
      mu_.AssertHeld();
      group->set_allocator(new GroupAllocator(wrapped, group, memory));
      if (group->is_leader()) {
        visible_allocators_[group] =
            new LeaderAllocator(wrapped, spec.gpu, memory);
      }
    };
    group->set_priority(options_.Priority(group->index()));
    absl::Status status;
    StreamAwarePool* pool = nullptr;
    if (options_.has_pool()) {
      absl::StatusOr<StreamAwarePool*> made =
          PoolOf(spec.gpu, gpu_options, bytes_of_gpu);
      if (made.ok()) pool = *made;
      status = made.status();
    }
    if (pool != nullptr) {
      set(new PoolAllocator(pool, group), pool);
    } else if (options_.cuda_malloc_async) {
      set(stock, GroupAllocator::RegionOf());
    } else {
      set(stock, GroupAllocator::RegionOf(
                     [gpu = group->gpu()](const void* address, size_t bytes) {
                       return CudaRegionOf(gpu, address, bytes);
                     }));
    }
    if (options_.host_allocators) {
      auto pinned = NewPinnedMemory(*group);
      if (!pinned.ok()) return pinned.status();
      group->set_host_allocator(pinned->release());
    }
    return status;
  }

  absl::StatusOr<StreamAwarePool*> PoolOf(GpuGroups* gpu,
                                          const GPUOptions& gpu_options,
                                          int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::unique_ptr<StreamAwarePool>& pool = pools_[gpu];
    if (pool != nullptr) return pool.get();
    auto memory = NewCudaMemory(
        gpu->leader()->gpu(), gpu_options.experimental().use_unified_memory());
    if (!memory.ok()) return memory.status();
    pool = NewStreamAwarePool(*std::move(memory), gpu, options_, bytes,
                              AllowGrowth(gpu_options), /*allow_retry=*/true);
    return pool.get();
  }

  absl::Mutex mu_;
  Options options_ ABSL_GUARDED_BY(mu_);
  std::vector<Spec> specs_ ABSL_GUARDED_BY(mu_);  // by TensorFlow device id
  std::map<int, MemoryInfo> memory_ ABSL_GUARDED_BY(mu_);
  // Never deleted, as TensorFlow's own allocators are.
  std::map<StreamGroup*, Allocator*> visible_allocators_ ABSL_GUARDED_BY(mu_);
  std::map<GpuGroups*, std::unique_ptr<StreamAwarePool>> pools_
      ABSL_GUARDED_BY(mu_);
  // What CreateGPUDevice cannot return.
  absl::Status memory_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<DeviceFactory> NewCudaGpuFactory() {
  return std::make_unique<CudaGpuFactory>();
}

}  // namespace multistream
}  // namespace tensorflow
