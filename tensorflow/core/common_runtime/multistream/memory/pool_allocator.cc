// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/pool_allocator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"

namespace tensorflow {
namespace multistream {

std::unique_ptr<StreamAwarePool> NewStreamAwarePool(
    std::unique_ptr<SubAllocator> memory, GpuGroups* gpu,
    const Options& options, int64_t limit, bool allow_growth,
    bool allow_retry) {
  StreamAwarePool::Options of_pool;
  of_pool.limit = limit;
  of_pool.allow_growth = allow_growth;
  of_pool.allow_retry = allow_retry;
  of_pool.thrifty = options.stream_aware;
  of_pool.most_per_extension = int64_t{options.extend_limit_mb} << 20;
  std::vector<StreamGroup*> groups;
  for (int i = 0; i < gpu->size(); ++i) groups.push_back(gpu->group(i));
  return std::make_unique<StreamAwarePool>(std::move(memory), std::move(groups),
                                           of_pool);
}

std::string PoolAllocator::Name() {
  return absl::StrCat("GPU_", group_->gpu(), "_group_", group_->index(),
                      "_stream_aware_pool");
}

void* PoolAllocator::AllocateRaw(size_t alignment, size_t num_bytes,
                                 const AllocationAttributes& attributes) {
  if (alignment > MemoryOwner::kGranule) return nullptr;
  return pool_->Allocate(group_->index(), num_bytes,
                         attributes.retry_on_failure);
}

void PoolAllocator::DeallocateRaw(void* address) {
  if (address != nullptr) pool_->Free(address);
}

}  // namespace multistream
}  // namespace tensorflow
