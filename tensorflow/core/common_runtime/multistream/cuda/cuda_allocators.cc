// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_allocators.h"

#include <cstddef>

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_memory.h"
#include "tensorflow/core/common_runtime/multistream/memory/pool_allocator.h"

namespace tensorflow {
namespace multistream {

std::optional<AllocatorStats> LeaderAllocator::GetStats() {
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

bool LeaderAllocator::ClearStats() {
  bool cleared = GroupAllocator::ClearStats();
  for (int i = 1; i < gpu_->size(); ++i) {
    if (Allocator* allocator = gpu_->group(i)->allocator()) {
      cleared &= allocator->ClearStats();
    }
  }
  return cleared;
}

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
  auto memory = NewCudaMemory(gpu->leader()->gpu(),
                              gpu_options.experimental().use_unified_memory());
  if (!memory.ok()) return memory.status();
  pool = NewStreamAwarePool(*std::move(memory), gpu, options, bytes,
                            AllowGrowth(gpu_options), /*allow_retry=*/true);
  return pool.get();
}

}  // namespace multistream
}  // namespace tensorflow
