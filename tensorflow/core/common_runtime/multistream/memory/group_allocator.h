// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a group allocate? GroupAllocator allocates GPU memory and enters the
// group in MemoryOwner as its owner; HostAllocator allocates pinned host
// memory. The device factories make the allocators, and TensorFlow's kernels
// call them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_GROUP_ALLOCATOR_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_GROUP_ALLOCATOR_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {

// Attributes of host memory that the GPU can copy from and to.
inline AllocatorAttributes PinnedMemory() {
  AllocatorAttributes pinned;
  pinned.set_on_host(true);
  pinned.set_gpu_compatible(true);
  return pinned;
}

// Which memory has been allocated on this thread since an op began? Group
// allocators add addresses and OpAccesses reads them, for the sanitizer: an op
// has written an output whose memory was allocated since the op began.
inline std::vector<const void*>* FreshMemory() {
  thread_local std::vector<const void*> fresh;
  return &fresh;
}

inline void ForgetFreshMemory(const void* address) {
  std::vector<const void*>& fresh = *FreshMemory();
  fresh.erase(std::remove(fresh.begin(), fresh.end(), address), fresh.end());
}
inline void NoteFreshMemory(const void* address) {
  // Each op clears the list. Bound it for threads that launch none.
  constexpr size_t kMost = 4096;
  if (FreshMemory()->size() >= kMost) FreshMemory()->clear();
  FreshMemory()->push_back(address);
}

class GroupAllocator : public AllocatorWrapper {
 public:
  // Returns the region, as the wrapped allocator took it from the GPU, that
  // contains the `bytes` at `address`.
  using RegionOf = std::function<std::pair<const void*, size_t>(
      const void* address, size_t bytes)>;

  // `region_of`: null if `wrapped` moves memory between groups in stream order,
  // as cudaMallocAsync does.
  GroupAllocator(Allocator* wrapped, StreamGroup* group, RegionOf region_of)
      : AllocatorWrapper(wrapped),
        group_(group),
        region_of_(std::move(region_of)) {}

  // `wrapped` is the group's part of `pool`.
  GroupAllocator(Allocator* wrapped, StreamGroup* group, StreamAwarePool* pool)
      : AllocatorWrapper(wrapped), group_(group), pool_(pool) {}

  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return AllocateRaw(alignment, num_bytes, AllocationAttributes());
  }
  void* AllocateRaw(size_t alignment, size_t num_bytes,
                    const AllocationAttributes& attributes) override {
    // Reclaim the memory of recordings before waiting for steps to free theirs.
    // TensorFlow's GPU kernels ask for 0 bytes for an empty tensor, and get
    // null.
    if (num_bytes > 0 && attributes.retry_on_failure &&
        HaveReclaimableMemory()) {
      const AllocationAttributes once(/*retry_on_failure=*/false,
                                      attributes.allocation_will_be_logged,
                                      attributes.freed_by_func);
      const absl::Time until = absl::Now() + kLongestGivingBack;
      for (bool is_given_back = false;; is_given_back = true) {
        void* address =
            AllocatorWrapper::AllocateRaw(alignment, num_bytes, once);
        if (address != nullptr) return Own(address, num_bytes);
        if (!is_given_back) {
          ReclaimMemory();
        } else if (absl::Now() > until) {
          break;
        }
        absl::SleepFor(absl::Milliseconds(1));
      }
    }
    return Own(AllocatorWrapper::AllocateRaw(alignment, num_bytes, attributes),
               num_bytes);
  }
  void DeallocateRaw(void* address) override {
    // A fork()ed child cannot reuse the memory.
    if (GroupsAreOfParent()) return;
    if (Sanitizer* sanitizer = group_->sanitizer()) sanitizer->Free(address);
    AllocatorWrapper::DeallocateRaw(address);
  }
  std::optional<AllocatorStats> GetStats() override {
    return wrapped()->GetStats();
  }
  bool ClearStats() override { return wrapped()->ClearStats(); }
  void SetSafeFrontier(uint64_t count) override {
    wrapped()->SetSafeFrontier(count);
  }
  void SetStreamAndPreallocateMemory(void* stream) override {
    wrapped()->SetStreamAndPreallocateMemory(stream);
  }

 protected:
  StreamGroup* group() const { return group_; }
  StreamAwarePool* pool() const { return pool_; }

 private:
  // Long enough for streams to complete the work that uses the recordings'
  // memory.
  static constexpr absl::Duration kLongestGivingBack = absl::Milliseconds(200);

  // Asks this group, or with a shared pool all groups.
  bool HaveReclaimableMemory() const {
    if (pool_ == nullptr) return group_->reclaimable()->IsHeld();
    GpuGroups* gpu = FindGpuGroups(group_->gpu());
    return gpu != nullptr && gpu->HaveReclaimableMemory();
  }
  // Asks all groups for the leader's memory, too: recordings of each keep
  // variables in it (variable_home.h).
  void ReclaimMemory() {
    GpuGroups* gpu = pool_ != nullptr || group_->is_leader()
                         ? FindGpuGroups(group_->gpu())
                         : nullptr;
    if (gpu != nullptr) {
      gpu->ReclaimMemory();
    } else {
      group_->reclaimable()->Reclaim(group_);
    }
  }

  void* Own(void* address, size_t bytes) {
    if (address == nullptr && bytes > 0) {
      std::optional<AllocatorStats> all;
      if (pool_ != nullptr) all = pool_->Stats();
      group_->NoteNoMemory(bytes, wrapped()->GetStats(), all);
    }
    if (address == nullptr) return nullptr;
    const bool moves = pool_ == nullptr && region_of_ == nullptr;
    MemoryOwner* owner = MemoryOwner::Get();
    if (moves) {
      if (!owner->Owns(address, bytes, group_)) {
        owner->Add(address, bytes, group_);
      }
    } else if (pool_ == nullptr && !owner->Owns(address, bytes, group_)) {
      const auto [begin, size] = region_of_(address, bytes);
      owner->Add(begin, size, group_);
    }
    if (Sanitizer* sanitizer = group_->sanitizer()) {
      // Leader memory that no leader op allocates is the target of a copy from
      // the host or from another GPU to the visible device. TensorFlow waits
      // for the end of this copy. The thread may be launching an op of another
      // group, for example a call whose results it copies.
      const bool for_copy =
          group_->is_leader() && GroupOnThread::Get() != group_;
      if (moves) sanitizer->Forget(address, bytes);
      sanitizer->Allocate(group_->index(), address, bytes, for_copy);
      NoteFreshMemory(address);
    }
    return address;
  }

  StreamGroup* const group_;
  const RegionOf region_of_;
  StreamAwarePool* const pool_ = nullptr;
};

// A group's pinned host memory. Owns the wrapped allocator. Frees nothing in a
// fork()ed child, where the wrapped allocator's lock may stay locked for ever.
class HostAllocator : public AllocatorWrapper {
 public:
  explicit HostAllocator(std::unique_ptr<Allocator> wrapped)
      : AllocatorWrapper(wrapped.get()), owned_(std::move(wrapped)) {}

  void DeallocateRaw(void* address) override {
    if (!GroupsAreOfParent()) AllocatorWrapper::DeallocateRaw(address);
  }
  std::optional<AllocatorStats> GetStats() override {
    return wrapped()->GetStats();
  }
  bool ClearStats() override { return wrapped()->ClearStats(); }

 private:
  const std::unique_ptr<Allocator> owned_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_GROUP_ALLOCATOR_H_
