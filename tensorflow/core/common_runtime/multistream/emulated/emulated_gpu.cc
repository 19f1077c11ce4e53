// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/base/session_config.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/emulated/checked_uses.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_fusing.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/common_runtime/threadpool_device.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/setround.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

constexpr int64_t kEmulatedMemory = int64_t{4} << 30;

// Address space that the system backs with memory as it is touched. Registered
// as `group`'s memory, unless `group` is nullptr.
class MappedMemory : public SubAllocator {
 public:
  explicit MappedMemory(StreamGroup* group)
      : SubAllocator({}, {}), group_(group) {}

  void* Alloc(size_t alignment, size_t num_bytes,
              size_t* bytes_received) override {
    void* memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *bytes_received = memory == MAP_FAILED ? 0 : num_bytes;
    if (memory == MAP_FAILED) return nullptr;
    if (group_ != nullptr) {
      MemoryOwner::Get()->Add(memory, num_bytes, group_);
    }
    return memory;
  }
  void Free(void* memory, size_t num_bytes) override {
    munmap(memory, num_bytes);
  }
  bool SupportsCoalescing() const override { return false; }

 private:
  StreamGroup* const group_;
};

// Checks that no other group still uses freed memory, and poisons the memory,
// so that a use after free shows.
class CheckedAllocator : public GroupAllocator {
 public:
  // `memory`: see GroupAllocator.
  template <typename Memory>
  CheckedAllocator(std::unique_ptr<Allocator> wrapped, StreamGroup* group,
                   Memory memory)
      : GroupAllocator(wrapped.get(), group, std::move(memory)),
        owned_(std::move(wrapped)) {}

  void DeallocateRaw(void* memory) override {
    if (GroupsAreOfParent()) return;
    const size_t bytes = RequestedSize(memory);
    // For a large tensor, poison only both ends: as visible, and cheaper.
    constexpr size_t kSpoiled = 4096;
    char* begin = static_cast<char*>(memory);
    std::memset(begin, 0xff, std::min(bytes, kSpoiled));
    if (bytes > kSpoiled) {
      const size_t rest = std::min(bytes - kSpoiled, kSpoiled);
      std::memset(begin + bytes - rest, 0xff, rest);
    }
    GroupAllocator::DeallocateRaw(memory);
  }

 private:
  const std::unique_ptr<Allocator> owned_;
};

// Whether a GPU would launch work for `kernel`.
bool IsKernel(const OpKernel& kernel) {
  static const auto* not_launched =
      new absl::flat_hash_set<std::string>(absl::StrSplit(
          "_Arg _DeviceArg _DeviceRetval _HostRecv _HostSend _Recv _Retval "
          "_Send _SwitchN Const ControlTrigger Enter Exit LoopCond Merge "
          "NextIteration Placeholder RefEnter RefExit RefIdentity RefMerge "
          "RefNextIteration RefSwitch Switch VarHandleOp VariableV2",
          ' '));
  return !not_launched->contains(kernel.type_string_view()) &&
         !LaunchesNothing(kernel.type_string_view());
}

// While this object lives, no other step updates rows of a variable, if
// `kernel` does. A GPU adds to rows atomically. TensorFlow's kernels for the
// CPU hold a variable's lock shared, and of two that add at once one may be
// lost.
class UpdatesOfRowsInTurn {
 public:
  explicit UpdatesOfRowsInTurn(const OpKernel& kernel) {
    if (kernel.num_inputs() == 0 ||
        !absl::StrContains(kernel.type_string_view(), "Scatter")) {
      return;
    }
    const DataType variable = kernel.input_type(0);
    if (variable != DT_RESOURCE && !IsRefType(variable)) return;
    static auto* mutex = new absl::Mutex;
    lock_.emplace(mutex);
  }

 private:
  std::optional<absl::MutexLock> lock_;
};

// A CPU device whose on_host memory is ordinary host memory, as with a GPU.
class HostAndGroupMemory : public ThreadPoolDevice {
 public:
  using ThreadPoolDevice::ThreadPoolDevice;

  absl::Status TryGetDeviceContext(DeviceContext** context) override {
    *context = ContextOfEmulatedGpu();
    (*context)->Ref();
    return absl::OkStatus();
  }

  absl::Status MakeTensorFromProto(const TensorProto& proto,
                                   const AllocatorAttributes attributes,
                                   Tensor* tensor) override {
    if (!DataType_IsValid(proto.dtype()) || proto.dtype() == DT_INVALID ||
        !tensor->FromProto(GetAllocator(attributes), proto)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Cannot parse tensor from proto: ", proto.DebugString()));
    }
    return absl::OkStatus();
  }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    if (!attributes.on_host())
      return ThreadPoolDevice::GetAllocator(attributes);
    return attributes.gpu_compatible() && pinned_ != nullptr
               ? pinned_
               : HostMemoryOfEmulatedGpus();
  }
  // The device's group, whose host allocator serves copies.
  void set_stream_group(const StreamGroup* group) {
    stream_group_ = group;
    pinned_ = group->host_allocator();
  }

  void Compute(OpKernel* kernel, OpKernelContext* context) override {
    std::optional<ScopedTrace> trace;
    if (Trace::IsOn() && IsKernel(*kernel)) {
      trace.emplace(TraceKind::kKernel, stream_group_->gpu(),
                    stream_group_->index());
      trace->Set(0, kernel->name(), kernel->type_string());
      kernels_traced_.fetch_add(1, std::memory_order_relaxed);
    }
    // A recorded step's results are where its ops leave them, int32's, too.
    if (!is_recorder_ || kernel->type_string_view() != "_Retval") {
      OP_REQUIRES_OK(context, CheckMemoryOfInputs(*kernel, context));
    }
    {
      const UpdatesOfRowsInTurn in_turn(*kernel);
      ThreadPoolDevice::Compute(kernel, context);
    }
    MoveOutputs(*kernel, context, !is_recorder_);
  }
  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    OP_REQUIRES_OK_ASYNC(context, CheckMemoryOfInputs(*kernel, context), done);
    ThreadPoolDevice::ComputeAsync(
        kernel, context, [this, kernel, context, done = std::move(done)] {
          MoveOutputs(*kernel, context, !is_recorder_);
          done();
        });
  }
  // A recorder's steps get their arguments from the recording.
  void set_is_recorder() { is_recorder_ = true; }

  int64_t kernels_traced() const {
    return kernels_traced_.load(std::memory_order_relaxed);
  }

  void CopyTensorInSameDevice(const Tensor* from, Tensor* to,
                              const DeviceContext* device_context,
                              StatusCallback done) override {
    if (const int64_t begin = Trace::Begin(); begin != 0) {
      done = [group = stream_group_, begin, bytes = from->TotalBytes(),
              done = std::move(done)](const absl::Status& status) {
        Trace::Get()->Record({TraceKind::kCopy, group->gpu(), group->index(),
                              begin, 0, static_cast<int64_t>(bytes), "",
                              "GPU to GPU"});
        done(status);
      };
    }
    ThreadPoolDevice::CopyTensorInSameDevice(from, to, device_context,
                                             std::move(done));
  }

 private:
  const StreamGroup* stream_group_ = nullptr;
  Allocator* pinned_ = nullptr;
  bool is_recorder_ = false;
  std::atomic<int64_t> kernels_traced_{0};
};

using EmulatedDevice = GroupDevice<HostAndGroupMemory>;

// A recording's launch runs the step's ops again, in the same memory.
class EmulatedRecorder : public RecordingDevice<HostAndGroupMemory>,
                         public Recorder {
 public:
  using RecordingDevice::RecordingDevice;

  Device* device() override { return this; }
  // On a GPU the next op finds what an asynchronous op has launched.
  void ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                    AsyncOpKernel::DoneCallback done) override {
    RecordingDevice::ComputeAsync(kernel, context,
                                  [this, kernel, done = std::move(done)] {
                                    if (IsKernel(*kernel)) {
                                      NoteUnknown(kernel->name());
                                    }
                                    done();
                                  });
  }
  std::unique_ptr<Recording> NewRecording() override {
    return std::make_unique<EmulatedRecording>(this);
  }

 private:
  class EmulatedRecording : public Recording {
   public:
    explicit EmulatedRecording(EmulatedRecorder* recorder)
        : recorder_(recorder),
          memory_(recorder->OwnAllocator(AllocatorAttributes()),
                  cpu_allocator(), recorder->apart_bytes()) {}

    Allocator* memory() override { return memory_.device(); }
    bool Has(const void* address, size_t bytes) const override {
      return memory_.IsDevice(address, bytes);
    }

    absl::Status Record(std::function<absl::Status()> enqueue) override {
      enqueue_ = std::move(enqueue);
      CheckedUses checked(&memory_);
      {
        Uses uses(recorder_, &memory_);
        uses.Watch(&checked);
        memory_.Start();
        TF_RETURN_IF_ERROR(enqueue_());
      }
      std::vector<int> op_of_call;
      std::vector<RecordedOp> ops = checked.Ops(&op_of_call);
      has_branches_ = BranchesOf(ops, recorder_->most_branches()).gain;
      checked.Again();
      TF_RETURN_IF_ERROR(Repeat(&checked));
      if (!recorder_->fuses()) return absl::OkStatus();
      FusedOps fused = FusedOpsOf(ops);
      if (fused.saved == 0 || !memory_.KeepApart(fused.apart)) {
        return absl::OkStatus();
      }
      VLOG(1) << "A recording has " << fused.Summary();
      fused_ = std::move(fused);
      recorded_ = std::move(ops);
      op_of_call_ = std::move(op_of_call);
      return absl::OkStatus();
    }

    // Reported as on a GPU, though the emulated ops run one after another.
    bool has_branches() const override { return has_branches_; }
    absl::Status Launch(bool) override {
      if (!fused_) return Repeat(/*watcher=*/nullptr);
      EmulatedFusing fusing(recorded_, *fused_, op_of_call_);
      TF_RETURN_IF_ERROR(Repeat(&fusing));
      kernels_ = std::max<int64_t>(kernels_ - fused_->saved, 0);
      return fusing.status();
    }

    int64_t bytes() const override { return memory_.bytes(); }
    int64_t kernels() const override { return kernels_; }

   private:
    absl::Status Repeat(OpWatcher* watcher) {
      // The caller's thread may be Python's, and computes as a step's thread.
      const port::ScopedFlushDenormal flush;
      const port::ScopedSetRound round(FE_TONEAREST);
      Uses uses(recorder_, &memory_);
      uses.Watch(watcher);
      memory_.Repeat();
      const int64_t traced = recorder_->kernels_traced();
      const absl::Status status = enqueue_();
      kernels_ = recorder_->kernels_traced() - traced;
      // A CUDA graph would have read the old addresses.
      if (status.ok() && !memory_.SameReads()) {
        LOG(FATAL) << "A recording was launched that reads a variable where it "
                      "is no more";
      }
      return memory_.Check(status);
    }

    EmulatedRecorder* const recorder_;
    RecordingMemory memory_;
    std::function<absl::Status()> enqueue_;
    int64_t kernels_ = 0;
    bool has_branches_ = false;
    std::optional<FusedOps> fused_;
    std::vector<RecordedOp> recorded_;  // of fused_
    std::vector<int> op_of_call_;       // of fused_
  };
};

std::unique_ptr<GpuGroups> NewEmulatedGroups(int gpu, int count,
                                             SanitizerMode sanitizer) {
  auto all = NewGpuGroups<EmulatedStreamGroup>(gpu, count, sanitizer);
  all->NoteThatOpsOverlap();
  return all;
}

std::unique_ptr<Allocator> NewBfc(const StreamGroup& group, const char* kind,
                                  StreamGroup* owner, int64_t bytes,
                                  bool allow_growth) {
  BFCAllocator::Options options;
  options.allow_growth = allow_growth;
  options.allow_retry_on_failure = false;
  return std::make_unique<BFCAllocator>(
      std::make_unique<MappedMemory>(owner), bytes,
      absl::StrCat("emulated_gpu_", group.gpu(), "_group_", group.index(),
                   kind),
      options);
}

// Makes the groups' allocators, once, with their first devices.
void MakeAllocators(GpuGroups* gpu, const Options& options,
                    const GpuSizes& size, bool allow_growth) {
  static absl::Mutex* mu = new absl::Mutex;
  absl::MutexLock lock(mu);
  if (gpu->leader()->allocator() != nullptr) return;
  StreamAwarePool* pool = nullptr;
  if (options.has_pool()) {
    // Never deleted, as the allocators are.
    pool = NewStreamAwarePool(std::make_unique<MappedMemory>(nullptr), gpu,
                              options, size.group_bytes * gpu->size(),
                              allow_growth, /*allow_retry=*/false)
               .release();
  }
  for (int i = 0; i < gpu->size(); ++i) {
    StreamGroup* group = gpu->group(i);
    if (pool != nullptr) {
      group->set_allocator(new CheckedAllocator(
          std::make_unique<PoolAllocator>(pool, group), group, pool));
    } else {
      group->set_allocator(new CheckedAllocator(
          NewBfc(*group, "", group, size.group_bytes, allow_growth), group,
          [](const void* address, size_t bytes) {
            return std::make_pair(address, bytes);
          }));
    }
    if (options.host_allocators) {
      group->set_host_allocator(
          new HostAllocator(NewBfc(*group, "_host", nullptr, kEmulatedMemory,
                                   /*allow_growth=*/true)));
    }
    group->set_executor(i);
    group->set_context(size.contexts[i]);
    group->set_priority(options.Priority(i));
  }
}

class EmulatedGpuFactory : public DeviceFactory {
 public:
  absl::Status ListPhysicalDevices(std::vector<std::string>* devices) override {
    for (int i = 0; i < ProcessOptions()->emulated_gpus; ++i) {
      devices->push_back(absl::StrCat("/physical_device:GPU:", i));
    }
    return absl::OkStatus();
  }

  absl::Status GetDeviceDetails(
      int index,
      std::unordered_map<std::string, std::string>* details) override {
    (*details)["device_name"] = "emulated GPU";
    return absl::OkStatus();
  }

  absl::Status CreateDevices(
      const SessionOptions& options, const std::string& name_prefix,
      std::vector<std::unique_ptr<Device>>* devices) override {
    if (GroupsAreOfParent()) {
      return WantsGpus(options.config) ? GroupsAreOfParentError()
                                       : absl::OkStatus();
    }
    const Options& process = *ProcessOptions();
    std::vector<int> all;
    for (int i = 0; i < process.emulated_gpus; ++i) all.push_back(i);
    TF_ASSIGN_OR_RETURN(
        const std::vector<GpuSizes> sizes,
        PlanGroupSizes(process, options.config, all, [](int) {
          return MemoryInfo{kEmulatedMemory, kEmulatedMemory, 0};
        }));
    if (!sizes.empty()) RegisterRecurrentLayers();
    const auto threads = SessionThreads::Of(options.config);
    const auto stock_threads = StockThreads::Of(options);
    const bool allow_growth = AllowGrowth(options.config.gpu_options());
    for (int k = 0; k < static_cast<int>(sizes.size()); ++k) {
      const GpuSizes& size = sizes[k];
      GpuGroups* gpu = RegisterGpuGroups(
          size.gpu,
          NewEmulatedGroups(size.gpu, size.groups, process.sanitizer));
      TF_ASSIGN_OR_RETURN(
          const SessionStreams streams,
          StreamsOfSession(options.config, process, k, size.gpu, gpu->size()));
      MakeAllocators(gpu, process, size, allow_growth);
      std::unique_ptr<EmulatedDevice> leader;
      for (int i = 0; i < gpu->size(); ++i) {
        StreamGroup* group = gpu->group(i);
        auto device = std::make_unique<EmulatedDevice>(
            gpu, group, options, absl::StrCat(name_prefix, "/device:GPU:", k),
            Bytes(size.group_bytes * gpu->size()), DeviceLocality(),
            group->allocator());
        device->set_stream_group(group);
        if (i == 0) {
          device->SetSession(streams, threads, stock_threads);
          leader = std::move(device);
        } else {
          leader->AddHidden(std::move(device));
        }
      }
      for (int i = 0; process.captures() && i < gpu->size(); ++i) {
        StreamGroup* group = gpu->group(i);
        auto recorder = std::make_unique<EmulatedRecorder>(
            group, options, leader->name(),
            Bytes(size.group_bytes * gpu->size()), DeviceLocality(),
            group->allocator());
        recorder->set_stream_group(group);
        recorder->set_is_recorder();
        recorder->set_most_branches(process.capture_branches);
        recorder->set_fuses(process.capture_fuse);
        leader->AddRecorder(std::move(recorder));
      }
      devices->push_back(std::move(leader));
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<DeviceFactory> NewEmulatedGpuFactory() {
  return std::make_unique<EmulatedGpuFactory>();
}

DeviceProperties DeviceInfo(const DeviceNameUtils::ParsedName& device,
                            absl::FunctionRef<DeviceProperties()> stock) {
  const auto& options = ProcessOptions();
  if (device.type == DEVICE_GPU && options.ok() && options->emulated_gpus > 0) {
    DeviceProperties unknown;
    unknown.set_type("UNKNOWN");
    return unknown;
  }
  return stock();
}

}  // namespace tensorflow::multistream
