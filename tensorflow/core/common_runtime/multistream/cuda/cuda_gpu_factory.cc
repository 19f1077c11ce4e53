// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_gpu_factory.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/base/session_config.h"
#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_allocators.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_device.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_recorder.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/cuda/driver_locks.h"
#include "tensorflow/core/common_runtime/multistream/cuda/driver_waits.h"
#include "tensorflow/core/common_runtime/multistream/cuda/events_ahead.h"
#include "tensorflow/core/common_runtime/multistream/cuda/foreign_captures.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fused_kernels.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/common_runtime/multistream/cuda/sm_partitions.h"
#include "tensorflow/core/common_runtime/multistream/cuda/stream_executors.h"
#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/gpu/gpu_init.h"

namespace tensorflow::multistream {
namespace {

// Whether devices wait until few kernels are pending. They learn of a kernel's
// end by callbacks, which come only after the end of a recording.
bool LimitsPendingKernels(const ConfigProto& config) {
  const auto& options = config.gpu_options().experimental();
  const bool limits = options.kernel_tracker_max_interval() > 0 ||
                      options.kernel_tracker_max_bytes() > 0 ||
                      options.kernel_tracker_max_pending() > 0;
  if (limits) {
    LOG_FIRST_N(WARNING, 1) << "Multi-stream: steps are not captured, as "
                               "kernel_tracker_max_* limits pending kernels";
  }
  return limits;
}

class CudaGpuFactory : public BaseGPUDeviceFactory {
 public:
  // Returns an error if there is no GPU. If it listed none, Python would
  // request none, and run without GPUs and without a message.
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
    // Listing devices gets here without our AddDevices, so note it here too.
    const MakingGroups making;
    absl::MutexLock lock(&mu_);
    options_ = *ProcessOptions();
    TF_ASSIGN_OR_RETURN(const std::vector<int> physical, PhysicalGpus());
    absl::StatusOr<std::vector<GpuSizes>> sizes =
        PlanGroupSizes(options_, options.config, physical, [this](int gpu) {
          mu_.AssertHeld();
          return allocators_.FirstMemoryOf(gpu);
        });
    if (!sizes.ok()) return sizes.status();
    if (sizes->empty()) return absl::OkStatus();
    for (const GpuSizes& size : *sizes) {
      if (options_.sm_shares.empty()) break;
      // TensorFlow makes the GPU's context, with its flags, before DivideSms
      // would make one.
      TF_RETURN_IF_ERROR(
          se::GPUMachineManager()->ExecutorForDevice(size.gpu).status());
      TF_RETURN_IF_ERROR(DivideSms(size.gpu, size.groups, options_.sm_shares));
    }

    // Leaders first, so that the numbers in their names are their TensorFlow
    // ids.
    specs_.clear();
    std::vector<SessionStreams> streams;
    int most = 0;
    for (const GpuSizes& size : *sizes) most = std::max(most, size.groups);
    for (int i = 0; i < most; ++i) {
      for (int k = 0; k < static_cast<int>(sizes->size()); ++k) {
        if (i >= (*sizes)[k].groups) continue;
        GpuGroups* gpu = RegisterGpuGroups(
            (*sizes)[k].gpu,
            NewGpuGroups<CudaStreamGroup>((*sizes)[k].gpu, (*sizes)[k].groups,
                                          options_.sanitizer));
        if (gpu->size() != (*sizes)[k].groups) {
          return absl::FailedPreconditionError(absl::StrCat(
              "GPU ", (*sizes)[k].gpu, " has ", gpu->size(),
              " stream groups in this process, and a session asks for ",
              (*sizes)[k].groups,
              ". Groups are made once per process: list the visible GPUs in "
              "one order in all sessions."));
        }
        if (i == 0) {
          TF_ASSIGN_OR_RETURN(streams.emplace_back(),
                              StreamsOfSession(options.config, options_, k,
                                               (*sizes)[k].gpu, gpu->size()));
        }
        gpu->group(i)->set_context((*sizes)[k].contexts[i]);
        specs_.push_back(
            {gpu, gpu->group(i), absl::StrCat(name_prefix, "/device:GPU:", k)});
      }
    }
    // The recorders come last.
    const size_t groups = specs_.size();
    captures_ = options_.captures() && !LimitsPendingKernels(options.config);
    for (size_t i = 0; captures_ && i < groups; ++i) {
      specs_.push_back(specs_[i]);
      specs_.back().is_recorder = true;
    }
    std::vector<std::unique_ptr<Device>> all;
    absl::Status status = BaseGPUDeviceFactory::CreateDevices(
        WithLogicalDevices(options, *sizes), name_prefix, &all);
    ChooseExecutor(0, 0);
    MakeStreamsOfGroup(0, -1);
    if (!memory_status_.ok()) return memory_status_;
    if (!status.ok() && !options_.priorities.empty()) {
      // TensorFlow's error is about virtual devices; name our variable.
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
    if (captures_) {
      if (!GateWaitsOfCudaDriver() && options_.capture_is_default) {
        // Capture that the program did not ask for must not be in the way of
        // cudaDeviceSynchronize.
        for (SessionStreams& session : streams) {
          if (session.capture != CaptureMode::kInference) continue;
          session.capture = CaptureMode::kMarked;
        }
      }
      NoteFailedLaunchesOfTensorFlow();
      IgnoreForeignCapturesInTensorFlow();
    }
    WarnOfContextsInTurn();
    const auto threads = SessionThreads::Of(options.config);
    const auto stock_threads = StockThreads::Of(options);
    std::map<const se::StreamExecutor*, int> first_with;
    for (size_t i = 0; i < groups; ++i) {
      std::unique_ptr<CudaGroupDevice> device(
          static_cast<CudaGroupDevice*>(all[i].release()));
      auto* group = static_cast<CudaStreamGroup*>(specs_[i].group);
      TF_RETURN_IF_ERROR(group->Bind(device.get()));
      if (most > 1) {
        const auto active = Activated(device->executor());
        MakeEventsAhead();
      }
      group->set_executor(
          first_with.try_emplace(device->executor(), group->index())
              .first->second);
      device->SetContext(group);
      if (options_.merge_streams) device->CompleteMergedCopies(group);
      if (group->is_leader()) {
        device->SetSession(streams[i], threads, stock_threads);
        devices->push_back(std::move(device));
      } else {
        LeaderOf(specs_[i], *devices, sizes->size())
            ->AddHidden(std::move(device));
      }
    }
    for (size_t i = groups; i < all.size(); ++i) {
      std::unique_ptr<CudaRecorder> recorder(
          static_cast<CudaRecorder*>(all[i].release()));
      recorder->SetContext(specs_[i].group);
      recorder->set_memory(memory_of_recorder_.at(specs_[i].group).get());
      recorder->set_most_branches(options_.capture_branches);
      recorder->set_fuses(options_.capture_fuse && kKernelsAreCompared);
      LeaderOf(specs_[i], *devices, sizes->size())
          ->AddRecorder(std::move(recorder));
    }
    return absl::OkStatus();
  }

 private:
  struct Spec {
    GpuGroups* gpu;
    StreamGroup* group;
    std::string device_name;
    bool is_recorder = false;
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

  // The leader of a spec's GPU. The leaders are the last `gpus` entries of
  // `devices`, in the order of the specs.
  CudaGroupDevice* LeaderOf(const Spec& spec,
                            const std::vector<std::unique_ptr<Device>>& devices,
                            size_t gpus) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t k = devices.size() - gpus;
    for (size_t i = 0; specs_[i].gpu != spec.gpu; ++i) ++k;
    return static_cast<CudaGroupDevice*>(devices[k].get());
  }

  absl::StatusOr<std::vector<int>> PhysicalGpus() {
    std::vector<std::string> names;
    absl::Status status = BaseGPUDeviceFactory::ListPhysicalDevices(&names);
    // Ignored: without a driver there is no GPU, and PlanGroupSizes returns a
    // better error.
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

  SessionOptions WithLogicalDevices(const SessionOptions& options,
                                    const std::vector<GpuSizes>& sizes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    SessionOptions split = options;
    GPUOptions* gpu_options = split.config.mutable_gpu_options();
    // A fraction above 1 asks for unified memory. The fraction is cleared
    // below, so the request is passed on by the flag.
    if (gpu_options->per_process_gpu_memory_fraction() > 1) {
      gpu_options->mutable_experimental()->set_use_unified_memory(true);
    }
    gpu_options->clear_per_process_gpu_memory_fraction();
    std::vector<int> visible;
    auto* logical =
        gpu_options->mutable_experimental()->mutable_virtual_devices();
    logical->Clear();
    int most = 0;
    for (const GpuSizes& size : sizes) most = std::max(most, size.groups);
    for (const GpuSizes& size : sizes) {
      visible.push_back(size.gpu);
      auto* devices = logical->Add();
      const auto add = [&](int64_t megabytes, int ordinal, int group) {
        mu_.AssertHeld();
        devices->add_memory_limit_mb(static_cast<float>(megabytes));
        devices->add_device_ordinal(ordinal);
        if (!options_.priorities.empty()) {
          devices->add_priority(options_.Priority(group));
        }
      };
      const int64_t megabytes = size.group_bytes >> 20;
      for (int i = 0; i < size.groups; ++i) add(megabytes, i, i);
      for (int i = 0; captures_ && i < size.groups; ++i) {
        // Recorders have no memory of their own. But cudaMallocAsync's pool,
        // which all devices share, takes the limit of the last device.
        add(options_.cuda_malloc_async ? megabytes : 1, most + i, i);
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
    MakeStreamsOfGroup(spec.group->gpu(), spec.group->index());
    if (spec.is_recorder) {
      std::unique_ptr<MemoryOfRecorder>& memory =
          memory_of_recorder_[spec.group];
      if (memory == nullptr) {
        memory = std::make_unique<MemoryOfRecorder>(
            spec.group->allocator(), static_cast<CudaStreamGroup*>(spec.group));
      }
      return std::make_unique<CudaRecorder>(
          spec.group, options, spec.device_name, memory_limit, locality,
          tf_device_id, description, memory.get(), cpu_allocator,
          spec.group->host_allocator());
    }
    const auto bytes_of_gpu =
        static_cast<int64_t>(memory_limit.value()) * spec.gpu->size();
    if (spec.group->allocator() == nullptr) {
      memory_status_.Update(allocators_.Make(options_, spec.gpu, spec.group,
                                             options.config.gpu_options(),
                                             bytes_of_gpu, gpu_allocator));
    }
    Allocator* allocator = spec.group->is_leader()
                               ? allocators_.visible(spec.group)
                               : spec.group->allocator();
    return std::make_unique<CudaGroupDevice>(
        spec.gpu, spec.group, options, spec.device_name,
        spec.group->is_leader() ? Bytes(bytes_of_gpu) : memory_limit, locality,
        tf_device_id, description, allocator, cpu_allocator,
        spec.group->host_allocator());
  }

  absl::Mutex mu_;
  Options options_ ABSL_GUARDED_BY(mu_);
  std::vector<Spec> specs_ ABSL_GUARDED_BY(mu_);  // index: TensorFlow device id
  bool captures_ ABSL_GUARDED_BY(mu_) = false;
  CudaAllocators allocators_ ABSL_GUARDED_BY(mu_);
  std::map<const StreamGroup*, std::unique_ptr<MemoryOfRecorder>>
      memory_of_recorder_ ABSL_GUARDED_BY(mu_);
  // CreateGPUDevice has no Status to return, so its errors go here.
  absl::Status memory_status_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<DeviceFactory> NewCudaGpuFactory() {
  if (!ProcessOptions()->sm_shares.empty()) AskForHardwareQueues();
  return std::make_unique<CudaGpuFactory>();
}

}  // namespace tensorflow::multistream
