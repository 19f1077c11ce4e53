// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"

#include <algorithm>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

constexpr size_t kGranule = MemoryOwner::kGranule;
constexpr int64_t kPage = int64_t{2} << 20;  // in which GPUs map memory

// For small tensors a group takes 1 / kSlab of the peak in use at once from
// memory that it did not own, so that one wait serves many tensors.
constexpr int64_t kSlab = 64;

// Chunks looked at in each group, in search of one that costs no wait.
constexpr int kMostLookedAt = 8;

// A group caches chunks for tensors up to this size, and this much in all.
constexpr size_t kMostKept = size_t{256} << 10;
constexpr size_t kMostKeptInAll = size_t{4} << 20;

// As in stock TensorFlow.
constexpr int kMostMillisToWait = 10000;

[[noreturn]] void EndProcess(const void* address) {
  LOG(FATAL) << "Memory at " << address << " is not in use";
}

template <typename T>
T RoundUp(T n, T to) {
  return (n + to - 1) / to * to;
}

}  // namespace

StreamAwarePool::StreamAwarePool(std::unique_ptr<SubAllocator> memory,
                                 std::vector<StreamGroup*> groups,
                                 const Options& options)
    : memory_(std::move(memory)),
      groups_(std::move(groups)),
      options_(options),
      chunks_(static_cast<int>(groups_.size())),
      next_extension_(kPage),
      waited_(groups_.size()) {
  for (size_t i = 0; i < groups_.size(); ++i) {
    holdings_.push_back(std::make_unique<Holdings>());
  }
}

StreamAwarePool::~StreamAwarePool() {
  absl::MutexLock lock(&mu_);
  for (const PoolChunks::Region& region : chunks_.regions()) {
    memory_->Free(region.begin, region.size);
  }
}

void* StreamAwarePool::Allocate(int group, size_t bytes, bool retry) {
  // Waiting cannot help a request above the limit.
  if (bytes == 0 || bytes > static_cast<size_t>(options_.limit)) return nullptr;
  if (void* memory = TakeKept(group, bytes)) return memory;
  if (void* memory = AllocateOnce(group, bytes)) return memory;
  if (!retry || !options_.allow_retry) return nullptr;
  waiting_.fetch_add(1);
  void* memory = retry_.AllocateRaw(
      [this, group](size_t, size_t n, bool) { return AllocateOnce(group, n); },
      kMostMillisToWait, kGranule, bytes);
  waiting_.fetch_sub(1);
  return memory;
}

void* StreamAwarePool::TakeKept(int group, size_t bytes) {
  if (bytes > kMostKept) return nullptr;
  Holdings* holdings = holdings_[group].get();
  absl::MutexLock lock(&holdings->mu);
  auto kept = holdings->kept.find(RoundUp(bytes, kGranule));
  if (kept == holdings->kept.end() || kept->second.empty()) return nullptr;
  Chunk* chunk = kept->second.back();
  kept->second.pop_back();
  holdings->kept_bytes -= chunk->size;
  return HandOut(chunk, bytes, holdings);
}

void* StreamAwarePool::HandOut(Chunk* chunk, size_t bytes, Holdings* holdings) {
  const auto size = static_cast<int64_t>(chunk->size);
  holdings->in_use[chunk->begin] = {chunk, bytes, ++holdings->last_id};
  AllocatorStats& stats = holdings->stats;
  ++stats.num_allocs;
  stats.bytes_in_use += size;
  stats.peak_bytes_in_use =
      std::max(stats.peak_bytes_in_use, stats.bytes_in_use);
  stats.largest_alloc_size = std::max(stats.largest_alloc_size, size);
  RaiseTo(bytes_in_use_.fetch_add(size) + size, &peak_bytes_in_use_);
  return chunk->begin;
}

void* StreamAwarePool::AllocateOnce(int group, size_t bytes) {
  const size_t size = RoundUp(bytes, kGranule);
  do {
    Chunk* chunk;
    {
      absl::MutexLock lock(&mu_);
      chunk = OwnOrFresh(group, size);
      if (chunk == nullptr && ReturnKept()) chunk = OwnOrFresh(group, size);
      if (chunk == nullptr) chunk = New(size, /*even_if_thrifty=*/false);
      if (chunk == nullptr) chunk = Foreign(group, size);
      if (chunk == nullptr) chunk = chunks_.Run(size);
      if (chunk == nullptr) chunk = New(size, /*even_if_thrifty=*/true);
      if (chunk == nullptr) continue;
      Take(chunk, group, size);
    }
    Holdings* holdings = holdings_[group].get();
    absl::MutexLock lock(&holdings->mu);
    return HandOut(chunk, bytes, holdings);
  } while (GiveBackFreeRegions(size));
  return nullptr;
}

void StreamAwarePool::Free(void* address) {
  Holdings* holdings = HoldingsOf(address);
  Chunk* chunk;
  {
    absl::MutexLock lock(&holdings->mu);
    auto found = EntryOf(address, holdings);
    chunk = found->second.chunk;
    const size_t asked_for = RoundUp(found->second.requested, kGranule);
    holdings->in_use.erase(found);
    const auto size = static_cast<int64_t>(chunk->size);
    holdings->stats.bytes_in_use -= size;
    bytes_in_use_.fetch_sub(size);
    chunk->freed = ++holdings->frees;
    if (asked_for <= kMostKept &&
        holdings->kept_bytes + chunk->size <= kMostKeptInAll) {
      holdings->kept[asked_for].push_back(chunk);
      holdings->kept_bytes += chunk->size;
      chunk = nullptr;
    }
  }
  if (chunk != nullptr) {
    absl::MutexLock lock(&mu_);
    chunks_.Return(chunk);
  }
  if (waiting_.load() > 0) retry_.NotifyDealloc();
}

bool StreamAwarePool::ReturnKept() {
  std::vector<Chunk*> chunks;
  for (const auto& holdings : holdings_) {
    absl::MutexLock lock(&holdings->mu);
    for (auto& [size, kept] : holdings->kept) {
      chunks.insert(chunks.end(), kept.begin(), kept.end());
    }
    holdings->kept.clear();
    holdings->kept_bytes = 0;
  }
  for (Chunk* chunk : chunks) chunks_.Return(chunk);
  return !chunks.empty();
}

StreamAwarePool::Chunk* StreamAwarePool::OwnOrFresh(int group, size_t size) {
  Chunk* chunk = chunks_.Smallest(group, size);
  return chunk != nullptr ? chunk : chunks_.Smallest(fresh(), size);
}

StreamAwarePool::Chunk* StreamAwarePool::New(size_t size,
                                             bool even_if_thrifty) {
  return Extend(size, even_if_thrifty) ? chunks_.Smallest(fresh(), size)
                                       : nullptr;
}

bool StreamAwarePool::Extend(size_t size, bool even_if_thrifty) {
  const int64_t left = options_.limit - pool_bytes_;
  const auto least = static_cast<int64_t>(size);
  if (least > left) return false;
  int64_t wanted = left;
  if (options_.allow_growth) {
    wanted = next_extension_;
    if (options_.thrifty) {
      const auto peak = static_cast<double>(
          std::max(peak_bytes_in_use_.load(), bytes_in_use_ + least));
      const auto spare =
          static_cast<int64_t>(peak * kMostOverPeak) - pool_bytes_;
      // Growing by one page is cheaper than a wait.
      if (RoundUp(least, kPage) > std::max(spare, kPage) && !even_if_thrifty) {
        return false;
      }
      wanted = std::min(wanted, spare / kPage * kPage);
    }
    if (options_.most_per_extension > 0) {
      wanted = std::min(wanted, options_.most_per_extension);
    }
    wanted = std::min(RoundUp(std::max(wanted, least), kPage), left);
  }
  size_t received = 0;
  void* begin = memory_->Alloc(kGranule, wanted, &received);
  // The GPU may have less free memory than expected: other processes use it.
  while (begin == nullptr && wanted > least) {
    wanted = std::max(least, wanted / 10 * 9 / kPage * kPage);
    begin = memory_->Alloc(kGranule, wanted, &received);
  }
  if (begin == nullptr) return false;
  if (wanted >= next_extension_) next_extension_ *= 2;
  chunks_.AddRegion(static_cast<char*>(begin), received);
  AddPoolBytes(static_cast<int64_t>(received));
  return true;
}

void StreamAwarePool::AddPoolBytes(int64_t bytes) {
  RaiseTo(pool_bytes_ += bytes, &peak_pool_bytes_);
}

bool StreamAwarePool::MustWait(int group, const Chunk& chunk) const {
  return chunk.group != group && chunk.group != fresh() &&
         !waited_[group].Covers(chunk.group, chunk.freed) &&
         IsKept(Rule::kWhoTakesAnothersMemoryWaits);
}

StreamAwarePool::Chunk* StreamAwarePool::Foreign(int group, size_t size) {
  Chunk* best = nullptr;
  auto cost = [this, group](const Chunk& chunk) {
    mu_.AssertHeld();
    return std::make_pair(MustWait(group, chunk), chunk.size);
  };
  for (int i = 0; i < fresh(); ++i) {
    if (i == group) continue;
    int looked_at = 0;
    const PoolChunks::FreeChunks& free = chunks_.FreeOf(i);
    for (auto it = free.lower_bound({size, nullptr});
         it != free.end() && looked_at < kMostLookedAt; ++it, ++looked_at) {
      Chunk* chunk = it->second;
      if (best == nullptr || cost(*chunk) < cost(*best)) best = chunk;
    }
  }
  return best;
}

void StreamAwarePool::Take(Chunk* chunk, int group, size_t size) {
  size_t wanted = size;
  if (chunk->group != group && chunk->size >= size) {
    // Take more, for the group's next tensors.
    const int64_t slab = std::min(kPage, peak_bytes_in_use_ / kSlab);
    wanted = std::max(size, RoundUp(static_cast<size_t>(slab), kGranule));
  }
  bool moves = false;
  bool was_used = false;  // by another group
  // Leaves the rest beyond `wanted` to the previous owner.
  auto take = [&](Chunk* part, size_t before) {
    mu_.AssertHeld();
    chunks_.RemoveFree(part);
    if (before + part->size > wanted) {
      chunks_.SplitIfWorthIt(part, wanted - before);
    }
    if (part->group == group) return;
    moves = true;
    if (part->group == fresh()) return;
    was_used = true;
    if (!MustWait(group, *part)) return;
    // Read before the wait: memory freed later may be used by work that this
    // wait does not cover.
    int64_t frees = holdings_[part->group]->frees;
    // Enqueued with the lock held: a later owner of a part of this chunk that
    // waits for this group then also waits for this wait.
    groups_[group]->OrderAfter(groups_[part->group]);
    if (!IsKept(Rule::kFreesAreReadBeforeTheWait)) {
      frees = holdings_[part->group]->frees;
    }
    waited_[group].Raise(part->group, frees);
  };
  take(chunk, 0);
  while (chunk->size < size) {
    take(chunk->after, chunk->size);
    chunks_.Join(chunk);
  }
  chunk->group = group;
  // Earlier waits on this group do not cover its later waits, so its count of
  // frees moves on.
  if (was_used) chunk->freed = ++holdings_[group]->frees;
  if (moves) {
    MemoryOwner::Get()->Add(chunk->begin, chunk->size, groups_[group]);
  }
  chunks_.SplitIfWorthIt(chunk, size);
  chunk->in_use = true;
}

bool StreamAwarePool::GiveBackFreeRegions(size_t size) {
  std::vector<PoolChunks::Region> given_back;
  std::vector<int> users;
  {
    absl::MutexLock lock(&mu_);
    const int64_t bytes =
        options_.limit - pool_bytes_ + chunks_.BytesOfFreeRegions();
    if (bytes < static_cast<int64_t>(size)) return false;
    given_back = chunks_.RemoveFreeRegions(&users);
  }
  // Without the lock: the work that the streams must complete may free memory.
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  for (int user : users) groups_[user]->Block().IgnoreError();
  for (const PoolChunks::Region& region : given_back) {
    MemoryOwner::Get()->Add(region.begin, region.size, nullptr);
    memory_->Free(region.begin, region.size);
    absl::MutexLock lock(&mu_);
    AddPoolBytes(-static_cast<int64_t>(region.size));
  }
  return !given_back.empty();
}

StreamAwarePool::Holdings* StreamAwarePool::HoldingsOf(
    const void* address) const {
  const StreamGroup* group = MemoryOwner::Get()->Find(address);
  const size_t index = group == nullptr ? groups_.size() : group->index();
  if (index >= groups_.size() || groups_[index] != group) EndProcess(address);
  return holdings_[index].get();
}

StreamAwarePool::InUse::iterator StreamAwarePool::EntryOf(const void* address,
                                                          Holdings* holdings) {
  auto found = holdings->in_use.find(address);
  if (found == holdings->in_use.end()) EndProcess(address);
  return found;
}

StreamAwarePool::Use StreamAwarePool::Find(const void* address) const {
  Holdings* holdings = HoldingsOf(address);
  absl::MutexLock lock(&holdings->mu);
  return EntryOf(address, holdings)->second;
}

size_t StreamAwarePool::RequestedSize(const void* address) const {
  return Find(address).requested;
}

size_t StreamAwarePool::AllocatedSize(const void* address) const {
  return Find(address).chunk->size;
}

int64_t StreamAwarePool::AllocationId(const void* address) const {
  return Find(address).id;
}

void StreamAwarePool::AddCommon(AllocatorStats* stats) const {
  stats->bytes_limit = options_.limit;
  stats->pool_bytes = pool_bytes_;
  stats->peak_pool_bytes = peak_pool_bytes_;
}

AllocatorStats StreamAwarePool::StatsOfGroup(int group) const {
  AllocatorStats stats;
  {
    absl::MutexLock lock(&holdings_[group]->mu);
    stats = holdings_[group]->stats;
  }
  AddCommon(&stats);
  return stats;
}

AllocatorStats StreamAwarePool::Stats() const {
  AllocatorStats stats;
  stats.bytes_in_use = bytes_in_use_;
  stats.peak_bytes_in_use = peak_bytes_in_use_;
  for (const auto& holdings : holdings_) {
    absl::MutexLock lock(&holdings->mu);
    stats.num_allocs += holdings->stats.num_allocs;
    stats.largest_alloc_size =
        std::max(stats.largest_alloc_size, holdings->stats.largest_alloc_size);
  }
  AddCommon(&stats);
  return stats;
}

void StreamAwarePool::ClearStats() {
  for (const auto& holdings : holdings_) {
    absl::MutexLock lock(&holdings->mu);
    AllocatorStats& stats = holdings->stats;
    stats.num_allocs = 0;
    stats.peak_bytes_in_use = stats.bytes_in_use;
    stats.largest_alloc_size = 0;
  }
  peak_bytes_in_use_ = bytes_in_use_.load();
}

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

}  // namespace tensorflow::multistream
