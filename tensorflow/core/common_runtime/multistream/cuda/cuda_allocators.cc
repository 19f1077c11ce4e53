// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_allocators.h"

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/gpu/gpu_init.h"

namespace tensorflow::multistream {
namespace {

// On an H200 each group took 50 to 60 MiB, including cuBLAS's workspace.
constexpr int64_t kHandlesMegabytes = 28;
// On an H200 each context took 524 MiB, before TensorFlow's kernels were loaded
// into it.
constexpr int64_t kContextMegabytes = 800;

absl::StatusOr<std::unique_ptr<SubAllocator>> MemoryOf(int gpu,
                                                       se::MemorySpace space) {
  TF_ASSIGN_OR_RETURN(se::StreamExecutor * executor,
                      se::GPUMachineManager()->ExecutorForDevice(gpu));
  return NewMemory(executor, gpu, space);
}

// Zeros if the GPU cannot be asked.
MemoryInfo CudaMemoryInfo(int gpu) {
  MemoryInfo info = {0, 0, 0};
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!executor.ok() ||
      !(*executor)->DeviceMemoryUsage(&info.free_bytes, &info.total_bytes)) {
    return info;
  }
  // TensorFlow's own reserve, as documented for its GPU memory: it grows with
  // the size of the CUDA libraries for newer chips.
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
  info.reserved_per_context_bytes = kContextMegabytes << 20;
  if (info.reserved_bytes >= info.free_bytes) info.reserved_bytes = 0;
  return info;
}

// The region of /physical_device:GPU:`gpu` that holds the `bytes` at `address`.
std::pair<const void*, size_t> CudaRegionOf(int gpu, const void* address,
                                            size_t bytes) {
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (executor.ok()) {
    auto range = MemoryRange(
        *executor, se::DeviceAddressBase(const_cast<void*>(address), bytes));
    if (range.ok()) return {range->opaque(), range->size()};
  }
  return {address, bytes};
}

// Pinned host memory for the copies of one group, limited by
// TF_GPU_HOST_MEM_LIMIT_IN_MB as TensorFlow's own pinned allocator is. Call
// while the group's executor is chosen (stream_executors.h).
absl::StatusOr<std::unique_ptr<Allocator>> NewPinnedMemory(
    const StreamGroup& group) {
  TF_ASSIGN_OR_RETURN(std::unique_ptr<SubAllocator> memory,
                      MemoryOf(group.gpu(), se::MemorySpace::kHost));
  int64_t megabytes = 1 << 16;
  if (const char* limit = std::getenv("TF_GPU_HOST_MEM_LIMIT_IN_MB")) {
    int64_t asked;
    if (absl::SimpleAtoi(limit, &asked) && asked > 0) megabytes = asked;
  }
  BFCAllocator::Options options;
  options.allow_growth = true;
  return std::make_unique<HostAllocator>(std::make_unique<BFCAllocator>(
      std::move(memory), megabytes << 20,
      absl::StrCat("GPU_", group.gpu(), "_group_", group.index(), "_host_bfc"),
      options));
}

// The visible device's allocator: its statistics cover all groups.
class LeaderAllocator : public GroupAllocator {
 public:
  template <typename Memory>
  LeaderAllocator(Allocator* wrapped, GpuGroups* gpu, Memory memory)
      : GroupAllocator(wrapped, gpu->leader(), std::move(memory)), gpu_(gpu) {}

  std::optional<AllocatorStats> GetStats() override {
    if (pool() != nullptr) return pool()->Stats();
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

}  // namespace

MemoryInfo CudaAllocators::FirstMemoryOf(int gpu) {
  auto [found, added] = memory_.try_emplace(gpu);
  if (added) found->second = CudaMemoryInfo(gpu);
  return found->second;
}

absl::Status CudaAllocators::Make(const Options& options, GpuGroups* gpu,
                                  StreamGroup* group,
                                  const GPUOptions& gpu_options,
                                  int64_t bytes_of_gpu, Allocator* stock) {
  auto set = [&](Allocator* wrapped, auto memory) {
    group->set_allocator(new GroupAllocator(wrapped, group, memory));
    if (group->is_leader()) {
      visible_[group] = new LeaderAllocator(wrapped, gpu, memory);
    }
  };
  group->set_priority(options.Priority(group->index()));
  absl::Status status;
  StreamAwarePool* pool = nullptr;
  if (options.has_pool()) {
    absl::StatusOr<StreamAwarePool*> made =
        PoolOf(options, gpu, gpu_options, bytes_of_gpu);
    if (made.ok()) pool = *made;
    status = made.status();
  }
  if (pool != nullptr) {
    set(new PoolAllocator(pool, group), pool);
  } else if (options.cuda_malloc_async) {
    set(stock, GroupAllocator::RegionOf());
  } else {
    set(stock, GroupAllocator::RegionOf(
                   [number = group->gpu()](const void* address, size_t bytes) {
                     return CudaRegionOf(number, address, bytes);
                   }));
  }
  if (options.host_allocators) {
    auto pinned = NewPinnedMemory(*group);
    if (!pinned.ok()) return pinned.status();
    group->set_host_allocator(pinned->release());
  }
  return status;
}

absl::StatusOr<StreamAwarePool*> CudaAllocators::PoolOf(
    const Options& options, GpuGroups* gpu, const GPUOptions& gpu_options,
    int64_t bytes) {
  std::unique_ptr<StreamAwarePool>& pool = pools_[gpu];
  if (pool != nullptr) return pool.get();
  // Unified memory, which the host backs too, is for a
  // per_process_gpu_memory_fraction above 1.
  auto memory = MemoryOf(gpu->leader()->gpu(),
                         gpu_options.experimental().use_unified_memory()
                             ? se::MemorySpace::kUnified
                             : se::MemorySpace::kDevice);
  if (!memory.ok()) return memory.status();
  pool = NewStreamAwarePool(*std::move(memory), gpu, options, bytes,
                            AllowGrowth(gpu_options), /*allow_retry=*/true);
  return pool.get();
}

}  // namespace tensorflow::multistream
