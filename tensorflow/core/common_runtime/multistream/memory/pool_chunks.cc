// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/pool_chunks.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"

namespace tensorflow::multistream {
namespace {

constexpr size_t kGranule = MemoryOwner::kGranule;

// A chunk is not split if the rest is less than 1 / kLeastSplit of the chunk.
constexpr size_t kLeastSplit = 16;

}  // namespace

void PoolChunks::AddRegion(char* begin, size_t size) {
  regions_.push_back({begin, size});
  AddFree(NewChunk(begin, size, fresh()));
}

PoolChunks::Chunk* PoolChunks::Smallest(int group, size_t size) const {
  auto found = free_[group].lower_bound({size, nullptr});
  return found == free_[group].end() ? nullptr : found->second;
}

PoolChunks::Chunk* PoolChunks::Run(size_t size) const {
  Chunk* best = nullptr;
  size_t best_size = 0;
  for (const Region& region : regions_) {
    Chunk* first = nullptr;
    size_t together = 0;
    for (Chunk* chunk = chunks_.at(region.begin).get();; chunk = chunk->after) {
      if (chunk != nullptr && !chunk->in_use) {
        if (first == nullptr) first = chunk;
        together += chunk->size;
        continue;
      }
      if (together >= size && (best == nullptr || together < best_size)) {
        best = first;
        best_size = together;
      }
      if (chunk == nullptr) break;
      first = nullptr;
      together = 0;
    }
  }
  return best;
}

void PoolChunks::Return(Chunk* chunk) {
  chunk->in_use = false;
  auto joins = [chunk](const Chunk* other) {
    return other != nullptr && !other->in_use && other->group == chunk->group;
  };
  if (joins(chunk->after)) {
    RemoveFree(chunk->after);
    Join(chunk);
  }
  if (joins(chunk->before)) {
    Chunk* before = chunk->before;
    RemoveFree(before);
    Join(before);
    chunk = before;
  }
  AddFree(chunk);
}

void PoolChunks::SplitIfWorthIt(Chunk* chunk, size_t size) {
  if (chunk->size - size < std::max(kGranule, chunk->size / kLeastSplit)) {
    return;
  }
  Chunk* rest = NewChunk(chunk->begin + size, chunk->size - size, chunk->group);
  rest->freed = chunk->freed;
  rest->before = chunk;
  rest->after = chunk->after;
  if (rest->after != nullptr) rest->after->before = rest;
  chunk->after = rest;
  chunk->size = size;
  AddFree(rest);
}

void PoolChunks::Join(Chunk* chunk) {
  Chunk* after = chunk->after;
  chunk->size += after->size;
  chunk->freed = std::max(chunk->freed, after->freed);
  chunk->after = after->after;
  if (chunk->after != nullptr) chunk->after->before = chunk;
  chunks_.erase(after->begin);
}

bool PoolChunks::IsFree(const Region& region) const {
  for (const Chunk* chunk = chunks_.at(region.begin).get(); chunk != nullptr;
       chunk = chunk->after) {
    if (chunk->in_use) return false;
  }
  return true;
}

int64_t PoolChunks::BytesOfFreeRegions() const {
  int64_t bytes = 0;
  for (const Region& region : regions_) {
    if (IsFree(region)) bytes += static_cast<int64_t>(region.size);
  }
  return bytes;
}

std::vector<PoolChunks::Region> PoolChunks::RemoveFreeRegions(
    std::vector<int>* users) {
  std::vector<Region> removed;
  for (auto region = regions_.begin(); region != regions_.end();) {
    if (!IsFree(*region)) {
      ++region;
      continue;
    }
    for (Chunk* chunk = chunks_.at(region->begin).get(); chunk != nullptr;) {
      Chunk* after = chunk->after;
      RemoveFree(chunk);
      if (chunk->group != fresh()) users->push_back(chunk->group);
      chunks_.erase(chunk->begin);
      chunk = after;
    }
    removed.push_back(*region);
    region = regions_.erase(region);
  }
  return removed;
}

PoolChunks::Chunk* PoolChunks::NewChunk(char* begin, size_t size, int group) {
  auto chunk = std::make_unique<Chunk>();
  chunk->begin = begin;
  chunk->size = size;
  chunk->group = group;
  return (chunks_[begin] = std::move(chunk)).get();
}

void PoolChunks::AddFree(Chunk* chunk) {
  free_[chunk->group][{chunk->size, chunk->begin}] = chunk;
}

void PoolChunks::RemoveFree(Chunk* chunk) {
  free_[chunk->group].erase({chunk->size, chunk->begin});
}

}  // namespace tensorflow::multistream
