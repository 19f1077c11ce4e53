// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a pool's memory cut into chunks, each of one group, and which of them
// are free? Pure bookkeeping without streams or locks: StreamAwarePool calls it
// with the pool's lock held.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"

namespace tensorflow::multistream {

class PoolChunks {
 public:
  struct Chunk {
    char* begin;
    size_t size;
    int group;                // current or last owner; fresh() if never used
    bool in_use = false;      // or cached by the group
    int64_t freed = 0;        // the group's `frees` when the chunk was freed
    Chunk* before = nullptr;  // neighbours in its region
    Chunk* after = nullptr;
  };
  struct Region {
    char* begin;
    size_t size;
  };
  // Free chunks of one group, ordered by size, then address.
  using FreeChunks = absl::btree_map<std::pair<size_t, char*>, Chunk*>;

  explicit PoolChunks(int groups) : free_(groups + 1) {}

  // Stands for the group of chunks that no group has used.
  int fresh() const { return static_cast<int>(free_.size()) - 1; }
  const FreeChunks& FreeOf(int group) const { return free_[group]; }
  const std::vector<Region>& regions() const { return regions_; }

  // Adds memory from the GPU as one fresh chunk.
  void AddRegion(char* begin, size_t size);

  // Smallest free chunk that belongs to `group` and has `size` bytes.
  Chunk* Smallest(int group, size_t size) const;
  // The first of adjacent free chunks, of any groups, that together have `size`
  // bytes; the smallest such run. nullptr if there is none.
  Chunk* Run(size_t size) const;

  // Makes a chunk free and merges free neighbours of the same group.
  void Return(Chunk* chunk);
  // Call before `chunk` is used or destroyed.
  void RemoveFree(Chunk* chunk);
  // Cuts `chunk` to `size` bytes and frees the rest for the same group, unless
  // the rest is too small.
  void SplitIfWorthIt(Chunk* chunk, size_t size);
  // Merges the next chunk into `chunk`.
  void Join(Chunk* chunk);

  // The bytes of regions without a chunk in use.
  int64_t BytesOfFreeRegions() const;
  // Removes the regions without a chunk in use, and returns them. Adds the
  // groups of their chunks to `users`, with duplicates.
  std::vector<Region> RemoveFreeRegions(std::vector<int>* users);

 private:
  bool IsFree(const Region& region) const;
  Chunk* NewChunk(char* begin, size_t size, int group);
  void AddFree(Chunk* chunk);

  absl::flat_hash_map<const void*, std::unique_ptr<Chunk>> chunks_;
  std::vector<FreeChunks> free_;  // the last one is fresh
  std::vector<Region> regions_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_
