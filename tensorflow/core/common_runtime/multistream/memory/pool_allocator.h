// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do the groups of a GPU take their memory from one pool?
// NewStreamAwarePool makes the pool that the environment asks for; a
// PoolAllocator is one group's allocator of the pool. The device factories make
// both, and GroupAllocator calls them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_ALLOCATOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

// Configured by TF_GPU_STREAM_GROUP_SHARE_MEM_POOL, TF_GPU_STREAM_AWARE_BFC and
// TF_BFC_EXTEND_LIMIT_MB.
std::unique_ptr<StreamAwarePool> NewStreamAwarePool(
    std::unique_ptr<SubAllocator> memory, GpuGroups* gpu,
    const Options& options, int64_t limit, bool allow_growth, bool allow_retry);

// Allocates one group's memory from the pool.
class PoolAllocator : public Allocator {
 public:
  PoolAllocator(StreamAwarePool* pool, StreamGroup* group)
      : pool_(pool), group_(group) {}

  std::string Name() override;
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return AllocateRaw(alignment, num_bytes, AllocationAttributes());
  }
  void* AllocateRaw(size_t alignment, size_t num_bytes,
                    const AllocationAttributes& attributes) override;
  void DeallocateRaw(void* address) override;
  bool TracksAllocationSizes() const override { return true; }
  size_t RequestedSize(const void* address) const override {
    return pool_->RequestedSize(address);
  }
  size_t AllocatedSize(const void* address) const override {
    return pool_->AllocatedSize(address);
  }
  int64_t AllocationId(const void* address) const override {
    return pool_->AllocationId(address);
  }
  std::optional<AllocatorStats> GetStats() override {
    return pool_->StatsOfGroup(group_->index());
  }
  bool ClearStats() override {
    pool_->ClearStats();
    return true;
  }
  AllocatorMemoryType GetMemoryType() const override {
    return AllocatorMemoryType::kDevice;
  }

 private:
  StreamAwarePool* const pool_;
  StreamGroup* const group_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_ALLOCATOR_H_
