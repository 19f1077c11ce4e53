// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do all stream groups of a GPU share one pool of memory
// (TF_GPU_STREAM_GROUP_SHARE_MEM_POOL), so that one group can use memory that
// the others do not need? The pool knows the last owner of each chunk:
//
//   | 0: in use | 0: free | 2: free | 1: in use | 1: free |  fresh  ....... |
//
// A group first gets chunks that it has freed itself: its stream orders the
// uses. A chunk of another group costs a wait: the new owner's stream waits for
// all that is enqueued on the old owner's, unless it has waited since the chunk
// was freed. Fresh memory, which no group has used, costs no wait.
//
// Each group has a cache of small chunks that it has freed, by size. So
// concurrent groups rarely take a shared lock. The caches are returned to the
// pool before the pool grows or a group takes another group's memory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/memory/pool_chunks.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "xla/tsl/framework/allocator_retry.h"

namespace tensorflow::multistream {

class StreamAwarePool {
 public:
  struct Options {
    // In bytes, for all groups together.
    int64_t limit = 0;
    // Take memory from the GPU on demand, not all at once.
    bool allow_growth = false;
    // An allocation that finds no memory waits for other steps to free some.
    bool allow_retry = false;
    // With allow_growth: take a free chunk of another group rather than let the
    // pool grow beyond kMostOverPeak times the peak of bytes in use.
    bool thrifty = false;
    // Largest extension, unless one allocation needs more; 0: no limit.
    int64_t most_per_extension = 0;
  };
  static constexpr double kMostOverPeak = 1.1;

  // `groups`: all groups of a GPU, ordered by index. They outlive the pool.
  StreamAwarePool(std::unique_ptr<SubAllocator> memory,
                  std::vector<StreamGroup*> groups, const Options& options);
  ~StreamAwarePool();

  // Returns memory aligned to 256 bytes, for use in the order of `group`'s
  // stream; nullptr if there is none.
  void* Allocate(int group, size_t bytes, bool retry);
  // Call when all uses are enqueued on the owner's stream, or are completed.
  void Free(void* address);

  // For memory in use only; ends the process otherwise.
  size_t RequestedSize(const void* address) const;
  size_t AllocatedSize(const void* address) const;
  int64_t AllocationId(const void* address) const;

  // `bytes_limit` is the limit of all groups together. `pool_bytes` is the
  // memory that the pool has taken from the GPU.
  AllocatorStats StatsOfGroup(int group) const;
  AllocatorStats Stats() const;
  void ClearStats();

 private:
  using Chunk = PoolChunks::Chunk;
  struct Use {
    Chunk* chunk;
    size_t requested;
    int64_t id;
  };
  using InUse = absl::flat_hash_map<const void*, Use>;
  // The memory that one group uses or caches. `mu` is taken alone or after mu_.
  struct Holdings {
    absl::Mutex mu;
    InUse in_use ABSL_GUARDED_BY(mu);
    // The cache of freed chunks, by requested size.
    absl::flat_hash_map<size_t, std::vector<Chunk*>> kept ABSL_GUARDED_BY(mu);
    size_t kept_bytes ABSL_GUARDED_BY(mu) = 0;
    int64_t last_id ABSL_GUARDED_BY(mu) = 0;
    std::atomic<int64_t> frees{0};
    AllocatorStats stats ABSL_GUARDED_BY(mu);
  };

  int fresh() const { return static_cast<int>(groups_.size()); }

  void* AllocateOnce(int group, size_t bytes);
  // Takes a chunk from `group`'s cache; nullptr if none fits.
  void* TakeKept(int group, size_t bytes);
  // Counts `chunk` as in use.
  void* HandOut(Chunk* chunk, size_t bytes, Holdings* holdings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(holdings->mu);
  // Empties all groups' caches. Returns whether they had any chunks.
  bool ReturnKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A free chunk of the group's own or, failing that, a fresh one.
  Chunk* OwnOrFresh(int group, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Extends the pool and returns a fresh chunk.
  Chunk* New(size_t size, bool even_if_thrifty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Extend(size_t size, bool even_if_thrifty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A free chunk of another group; preferably one that costs no wait.
  Chunk* Foreign(int group, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Merges the free chunks from `chunk` on into one chunk of `size` bytes in
  // use by `group`. Makes `group`'s stream wait for the previous owners'
  // streams.
  void Take(Chunk* chunk, int group, size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns unused regions to the GPU, if that can make room for `size` bytes.
  // Returns whether there were any.
  bool GiveBackFreeRegions(size_t size);

  bool MustWait(int group, const Chunk& chunk) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The Holdings of the memory's owner. Like EntryOf, ends the process if the
  // memory is not in use.
  Holdings* HoldingsOf(const void* address) const;
  static InUse::iterator EntryOf(const void* address, Holdings* holdings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(holdings->mu);
  Use Find(const void* address) const;
  void AddPoolBytes(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the limit and the sizes of the pool.
  void AddCommon(AllocatorStats* stats) const;

  const std::unique_ptr<SubAllocator> memory_;
  const std::vector<StreamGroup*> groups_;
  const Options options_;
  tsl::AllocatorRetry retry_;

  mutable absl::Mutex mu_;
  PoolChunks chunks_ ABSL_GUARDED_BY(mu_);
  int64_t next_extension_ ABSL_GUARDED_BY(mu_);
  // waited_[i][j] = n: group i's stream has waited for all that group j freed
  // up to `frees` == n. Counts direct waits only.
  std::vector<VectorClock> waited_ ABSL_GUARDED_BY(mu_);

  std::vector<std::unique_ptr<Holdings>> holdings_;
  // Sums over all groups.
  std::atomic<int64_t> bytes_in_use_{0};
  std::atomic<int64_t> peak_bytes_in_use_{0};
  std::atomic<int64_t> pool_bytes_{0};
  std::atomic<int64_t> peak_pool_bytes_{0};
  std::atomic<int> waiting_{0};  // threads that wait for freed memory
};

// Allocates one group's memory from the pool.
class PoolAllocator : public Allocator {
 public:
  PoolAllocator(StreamAwarePool* pool, StreamGroup* group)
      : pool_(pool), group_(group) {}

  std::string Name() override {
    return absl::StrCat("GPU_", group_->gpu(), "_group_", group_->index(),
                        "_stream_aware_pool");
  }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return AllocateRaw(alignment, num_bytes, AllocationAttributes());
  }
  void* AllocateRaw(size_t alignment, size_t num_bytes,
                    const AllocationAttributes& attributes) override {
    if (alignment > MemoryOwner::kGranule) return nullptr;
    return pool_->Allocate(group_->index(), num_bytes,
                           attributes.retry_on_failure);
  }
  void DeallocateRaw(void* address) override {
    if (address != nullptr) pool_->Free(address);
  }
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

// Configured by TF_GPU_STREAM_GROUP_SHARE_MEM_POOL, TF_GPU_STREAM_AWARE_BFC and
// TF_BFC_EXTEND_LIMIT_MB.
std::unique_ptr<StreamAwarePool> NewStreamAwarePool(
    std::unique_ptr<SubAllocator> memory, GpuGroups* gpu,
    const Options& options, int64_t limit, bool allow_growth, bool allow_retry);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_
