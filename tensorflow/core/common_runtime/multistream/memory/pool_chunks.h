// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a pool's memory cut into chunks, each of one group, and which of them
// are free? It counts and cuts, and sees no stream and takes no lock:
// stream_aware_pool.h asks, with its own lock held.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"

namespace tensorflow {
namespace multistream {

class PoolChunks {
 public:
  struct Chunk {
    char* begin;
    size_t size;
    int group;                // whose it is, or was last; fresh() if nobody's
    bool in_use = false;      // or kept by the group
    int64_t freed = 0;        // the group's `frees` when it was
    Chunk* before = nullptr;  // neighbours in its region
    Chunk* after = nullptr;
  };
  struct Region {
    char* begin;
    size_t size;
  };
  // Of one group, by size, then address.
  using FreeChunks = absl::btree_map<std::pair<size_t, char*>, Chunk*>;

  explicit PoolChunks(int groups) : free_(groups + 1) {}

  // Whose chunks those are that no group has used.
  int fresh() const { return static_cast<int>(free_.size()) - 1; }
  const FreeChunks& FreeOf(int group) const { return free_[group]; }
  const std::vector<Region>& regions() const { return regions_; }

  // A fresh chunk of memory from the GPU.
  void AddRegion(char* begin, size_t size);

  // Smallest free chunk that belongs to `group` and has `size` bytes.
  Chunk* Smallest(int group, size_t size) const;
  // The first chunk of free ones side by side that together have `size` bytes.
  Chunk* Run(size_t size) const;

  // Makes a chunk free, together with neighbours of the same group.
  void Return(Chunk* chunk);
  // `chunk` is about to be used, or is no more.
  void RemoveFree(Chunk* chunk);
  // Leaves `size` bytes to `chunk`; the rest, unless it is too little, is a
  // free chunk of the same group.
  void SplitIfWorthIt(Chunk* chunk, size_t size);
  // Adds the chunk after `chunk` to it.
  void Join(Chunk* chunk);

  // Of the regions that nobody uses.
  int64_t BytesOfFreeRegions() const;
  // Forgets those regions, and returns them. Adds the groups of their chunks to
  // `users`, some more than once.
  std::vector<Region> RemoveFreeRegions(std::vector<int>* users);

 private:
  bool IsFree(const Region& region) const;
  Chunk* NewChunk(char* begin, size_t size, int group);
  void AddFree(Chunk* chunk);

  absl::flat_hash_map<const void*, std::unique_ptr<Chunk>> chunks_;
  std::vector<FreeChunks> free_;  // the last one is fresh
  std::vector<Region> regions_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_POOL_CHUNKS_H_
