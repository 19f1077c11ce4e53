// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do all stream groups of a GPU share one pool of memory, so that a group
// that needs much finds it where others need little? With
// TF_GPU_STREAM_GROUP_SHARE_MEM_POOL, the groups' allocators allocate here. The
// pool knows whose each chunk was last:
//
//   | 0: in use | 0: free | 2: free | 1: in use | 1: free |  fresh  ....... |
//
// A group gets what it has freed itself, which its stream puts in order. A
// chunk of another group costs a wait: the asking group's stream waits for all
// that is enqueued on the other one's, unless it has since the chunk was freed.
// Fresh memory, which no group has used, costs none.
//
// What groups do at the same time takes no lock that they share, most of the
// time: a group keeps small chunks that it has freed, and takes them for
// tensors of the same size. They go back to the pool before it grows or takes
// memory of others.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/memory/pool_chunks.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "xla/tsl/framework/allocator_retry.h"

namespace tensorflow {
namespace multistream {

class StreamAwarePool {
 public:
  struct Options {
    // Bytes, of all groups together.
    int64_t limit = 0;
    // Take memory from the GPU as it is needed, not all at once.
    bool allow_growth = false;
    // A step that finds no memory waits for what others are about to free.
    bool allow_retry = false;
    // Where memory grows: take a free chunk of another group rather than let
    // the pool become larger than kMostOverPeak times what was in use at once.
    bool thrifty = false;
    // The most that one extension takes, if less is asked for; 0: no limit.
    int64_t most_per_extension = 0;
  };
  static constexpr double kMostOverPeak = 1.1;

  // `groups` are those of a GPU, ordered by index, and outlive the pool.
  StreamAwarePool(std::unique_ptr<SubAllocator> memory,
                  std::vector<StreamGroup*> groups, const Options& options);
  ~StreamAwarePool();

  // For use in the order of `group`'s stream; aligned to 256 bytes. nullptr if
  // there is no memory.
  void* Allocate(int group, size_t bytes, bool retry);
  // To be called when all uses are enqueued on the stream of the group that
  // has it, or are over.
  void Free(void* address);

  // Of memory in use.
  size_t RequestedSize(const void* address) const;
  size_t AllocatedSize(const void* address) const;
  int64_t AllocationId(const void* address) const;

  // `bytes_limit` is that of all groups. `pool_bytes` is what the pool has
  // taken from the GPU.
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
  // What one group has. Its lock is taken alone or after mu_.
  struct Holdings {
    absl::Mutex mu;
    InUse in_use ABSL_GUARDED_BY(mu);
    // Freed chunks by the size that they were asked for.
    absl::flat_hash_map<size_t, std::vector<Chunk*>> kept ABSL_GUARDED_BY(mu);
    size_t kept_bytes ABSL_GUARDED_BY(mu) = 0;
    int64_t last_id ABSL_GUARDED_BY(mu) = 0;
    std::atomic<int64_t> frees{0};
    AllocatorStats stats ABSL_GUARDED_BY(mu);
  };

  int fresh() const { return static_cast<int>(groups_.size()); }

  void* AllocateOnce(int group, size_t bytes);
  // One that `group` has kept; nullptr if there is none.
  void* TakeKept(int group, size_t bytes);
  // Counts `chunk` as in use.
  void* HandOut(Chunk* chunk, size_t bytes, Holdings* holdings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(holdings->mu);
  // Frees what the groups have kept. True if there was anything.
  bool ReturnKept() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the group's own chunks or else fresh ones.
  Chunk* OwnOrFresh(int group, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fresh memory from the GPU.
  Chunk* New(size_t size, bool even_if_thrifty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Extend(size_t size, bool even_if_thrifty)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A chunk of another group that `group` need not wait for, if there is one.
  Chunk* Foreign(int group, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes the free chunks from `chunk` on one of `size` bytes that `group`
  // uses, and its stream wait for those of the groups that had them.
  void Take(Chunk* chunk, int group, size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Gives regions that nobody uses back to the GPU, if that can help with
  // `size` bytes. True if there were any.
  bool GiveBackFreeRegions(size_t size);

  bool MustWait(int group, const Chunk& chunk) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the group that has the memory. These end the process if none has.
  Holdings* HoldingsOf(const void* address) const;
  static InUse::iterator EntryOf(const void* address, Holdings* holdings)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(holdings->mu);
  Use Find(const void* address) const;
  void AddPoolBytes(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The limit and what all groups share.
  void AddCommon(AllocatorStats* stats) const;

  const std::unique_ptr<SubAllocator> memory_;
  const std::vector<StreamGroup*> groups_;
  const Options options_;
  tsl::AllocatorRetry retry_;

  mutable absl::Mutex mu_;
  PoolChunks chunks_ ABSL_GUARDED_BY(mu_);
  int64_t next_extension_ ABSL_GUARDED_BY(mu_);
  // waited_[i][j]: group i's stream waits for what j had freed when its `frees`
  // had this value. Only for what it has waited for itself.
  std::vector<VectorClock> waited_ ABSL_GUARDED_BY(mu_);

  std::vector<std::unique_ptr<Holdings>> holdings_;
  // Of all groups.
  std::atomic<int64_t> bytes_in_use_{0};
  std::atomic<int64_t> peak_bytes_in_use_{0};
  std::atomic<int64_t> pool_bytes_{0};
  std::atomic<int64_t> peak_pool_bytes_{0};
  std::atomic<int> waiting_{0};  // threads, for memory that is freed
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_H_
