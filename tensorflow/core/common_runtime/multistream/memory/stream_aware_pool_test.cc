// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A pool of four groups, with a sanitizer that checks every use.

#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

// Gives at most `most` bytes. Addresses have the same order in each run,
// because the pool prefers the lower one of two equal chunks.
class AddressSpace : public SubAllocator {
 public:
  AddressSpace(int64_t most, std::vector<int64_t>* extensions)
      : SubAllocator({}, {}), most_(most), extensions_(extensions) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    begin_ = static_cast<char*>(memory);
  }
  ~AddressSpace() override {
    EXPECT_EQ(taken_, 0);
    munmap(begin_, kBytes);
  }

  void* Alloc(size_t alignment, size_t num_bytes,
              size_t* bytes_received) override {
    *bytes_received = 0;
    if (taken_ + static_cast<int64_t>(num_bytes) > most_) return nullptr;
    size_t at = 0;  // the first gap
    for (const auto& [begin, size] : in_use_) {
      if (begin - at >= num_bytes) break;
      at = begin + size;
    }
    if (kBytes - at < num_bytes) return nullptr;
    in_use_[at] = num_bytes;
    taken_ += num_bytes;
    extensions_->push_back(num_bytes / kMegabyte);
    *bytes_received = num_bytes;
    return begin_ + at;
  }
  void Free(void* memory, size_t num_bytes) override {
    taken_ -= num_bytes;
    EXPECT_EQ(in_use_.erase(static_cast<char*>(memory) - begin_), 1);
    madvise(memory, num_bytes, MADV_DONTNEED);
  }
  bool SupportsCoalescing() const override { return false; }

 private:
  static constexpr size_t kBytes = size_t{1} << 30;

  const int64_t most_;
  std::vector<int64_t>* const extensions_;
  char* begin_ = nullptr;
  std::map<size_t, size_t> in_use_;  // bytes from begin_, and how many
  int64_t taken_ = 0;
};

// A group that reports its waits to a sanitizer.
class WatchedGroup : public FakeStreamGroup {
 public:
  WatchedGroup(int index, StreamRecord* record, Sanitizer* sanitizer)
      : FakeStreamGroup(0, index, record), sanitizer_(sanitizer) {}

  void WaitFor(StreamGroup* other) override {
    FakeStreamGroup::WaitFor(other);
    sanitizer_->WaitForTail(index(), other->index());
  }
  absl::Status Synchronize() override {
    sanitizer_->HostSynchronized(index());
    return absl::OkStatus();
  }

 private:
  Sanitizer* const sanitizer_;
};

class StreamAwarePoolTest : public ::testing::Test {
 protected:
  static constexpr int kGroups = 4;

  StreamAwarePoolTest()
      : sanitizer_(kGroups, [](const Report& report) {
          ADD_FAILURE() << ReportAsText(report);
        }) {
    for (int i = 0; i < kGroups; ++i) {
      groups_.push_back(
          std::make_unique<WatchedGroup>(i, &record_, &sanitizer_));
    }
  }

  // The pool takes all of `limit` at once, unless `options` say otherwise.
  void MakePool(int64_t limit, StreamAwarePool::Options options = {},
                int64_t on_gpu = int64_t{1} << 40) {
    // A pool may get the same addresses as the one before.
    for (int i = 0; i < kGroups; ++i) sanitizer_.HostSynchronized(i);
    pool_.reset();
    extensions_.clear();
    options.limit = limit;
    std::vector<StreamGroup*> groups;
    for (const auto& group : groups_) groups.push_back(group.get());
    pool_ = std::make_unique<StreamAwarePool>(
        std::make_unique<AddressSpace>(on_gpu, &extensions_), groups, options);
  }

  char* Get(int group, int64_t bytes) {
    void* memory = pool_->Allocate(group, bytes, /*retry=*/false);
    if (memory == nullptr) return nullptr;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0);
    EXPECT_TRUE(MemoryOwner::Get()->Owns(memory, pool_->AllocatedSize(memory),
                                         groups_[group].get()));
    sanitizer_.Allocate(group, memory, bytes);
    sanitizer_.Launch(group, "op",
                      {{memory, static_cast<size_t>(bytes), true, "t"}});
    return static_cast<char*>(memory);
  }
  void Free(void* memory) {
    sanitizer_.Free(memory);
    pool_->Free(memory);
  }
  // The waits since the last call: "2<1" for a wait of group 2 for group 1.
  std::string Waits() {
    return absl::StrReplaceAll(absl::StrJoin(record_.Take(), " "),
                               {{" waits for ", "<"}});
  }
  void ExpectGet(int group, int64_t bytes, char* at, const char* waits) {
    EXPECT_EQ(Get(group, bytes), at);
    EXPECT_EQ(Waits(), waits);
  }
  std::vector<char*> GetMany(int group, int count, int64_t bytes) {
    std::vector<char*> all;
    for (int i = 0; i < count; ++i) all.push_back(Get(group, bytes));
    return all;
  }
  static StreamAwarePool::Options Growing(bool thrifty = false,
                                          int64_t most_per_extension = 0) {
    StreamAwarePool::Options options;
    options.allow_growth = true;
    options.thrifty = thrifty;
    options.most_per_extension = most_per_extension;
    return options;
  }

  StreamRecord record_;
  Sanitizer sanitizer_;
  std::vector<std::unique_ptr<WatchedGroup>> groups_;
  std::vector<int64_t> extensions_;  // of the pool, in MiB
  std::unique_ptr<StreamAwarePool> pool_;
};

TEST_F(StreamAwarePoolTest, OnlyUsedMemoryOfAnotherGroupCostsAWait) {
  MakePool(8 * kMegabyte);
  char* first = Get(1, 1000);
  Free(first);
  EXPECT_EQ(Get(1, 1024), first);
  Free(first);
  char* all = Get(1, 8 * kMegabyte - 1024);
  EXPECT_NE(all, first) << "fresh memory comes first";
  Free(all);
  EXPECT_EQ(Waits(), "");
  ExpectGet(2, 5 * kMegabyte, first, "2<1");
  // Group 1 still owns the rest.
  EXPECT_NE(Get(1, 3 * kMegabyte - 1024), nullptr);
  EXPECT_EQ(Waits(), "");
}

TEST_F(StreamAwarePoolTest, OneGroupMayUseAllAndAllAreOneLimit) {
  StreamAwarePool::Options options;
  options.allow_retry = true;
  MakePool(8 * kMegabyte, options);
  // Waiting cannot help these requests, so they are refused at once.
  for (size_t bytes :
       {size_t{0}, size_t{8 * kMegabyte + 1}, SIZE_MAX - 100, SIZE_MAX}) {
    EXPECT_EQ(pool_->Allocate(0, bytes, /*retry=*/true), nullptr) << bytes;
  }
  EXPECT_EQ(pool_->Stats().num_allocs, 0);
  char* all = Get(0, 8 * kMegabyte);
  EXPECT_EQ(Get(1, 1), nullptr);
  std::thread other([&] { Free(all); });
  char* part = static_cast<char*>(pool_->Allocate(1, kMegabyte, true));
  EXPECT_NE(part, nullptr) << "it waits for another thread's memory";
  other.join();
  pool_->Free(part);
  EXPECT_NE(Get(3, 8 * kMegabyte), nullptr);
  EXPECT_EQ(extensions_, std::vector<int64_t>({8}));
}

TEST_F(StreamAwarePoolTest, WhatNeedsNoWaitIsTakenFirst) {
  MakePool(8 * kMegabyte);
  const std::vector<char*> used = {Get(1, kMegabyte), Get(3, kMegabyte),
                                   Get(1, 6 * kMegabyte)};
  Free(used[0]);
  ExpectGet(2, kMegabyte / 2, used[0], "2<1");
  Free(used[1]);
  // Half of used[0] is left. Group 2 has already waited for it.
  ExpectGet(2, kMegabyte / 4, used[0] + kMegabyte / 2, "");
}

// Group 3 waits for group 2, which then waits for group 1. Memory that group 2
// has taken from group 1 since is not covered by group 3's wait.
TEST_F(StreamAwarePoolTest, WaitsOfOthersSinceAWaitDoNotCount) {
  MakePool(256 * kMegabyte);
  char* of_1 = Get(1, 128 * kMegabyte);
  char* of_2 = Get(2, 64 * kMegabyte);
  Get(3, 64 * kMegabyte);
  Free(of_1);
  Free(of_2);
  ExpectGet(3, 64 * kMegabyte, of_2, "3<2");
  // Group 2 takes a larger slab than it uses.
  ExpectGet(2, 1024, of_1, "2<1");
  ASSERT_EQ(MemoryOwner::Get()->Find(of_1 + 2 * kMegabyte - 1),
            groups_[2].get());
  ExpectGet(3, kMegabyte, of_1 + 1024, "3<2");
}

TEST_F(StreamAwarePoolTest, FreeChunksSideBySideMakeALargeOne) {
  MakePool(8 * kMegabyte);
  std::vector<char*> used;
  for (int i = 0; i < 8; ++i) used.push_back(Get(i % kGroups, kMegabyte));
  for (int i : {1, 2, 3, 6}) Free(used[i]);
  ExpectGet(0, 4 * kMegabyte, nullptr, "");
  ExpectGet(0, 2 * kMegabyte + 1, used[1], "0<1 0<2 0<3");
}

TEST_F(StreamAwarePoolTest, NeighboursOfOneGroupAreOneChunk) {
  MakePool(4 * kMegabyte);
  const std::vector<char*> used = GetMany(1, 4, kMegabyte);
  for (int i : {0, 2, 3, 1}) Free(used[i]);
  ExpectGet(1, 4 * kMegabyte, used[0], "");
}

TEST_F(StreamAwarePoolTest, GrowsByDoublingUnlessThereIsALimit) {
  using Megabytes = std::vector<int64_t>;
  for (const auto& [most, expected] :
       {std::pair(0, Megabytes({2, 4, 8, 16, 32})),
        std::pair(4, Megabytes({2, 4, 4, 4, 4, 20}))}) {
    MakePool(100 * kMegabyte, Growing(false, most * kMegabyte));
    std::vector<char*> used = GetMany(0, 8, 2 * kMegabyte);
    // An extension is at least as large as is asked for.
    used.push_back(Get(1, 20 * kMegabyte));
    EXPECT_EQ(extensions_, expected);
    for (char* memory : used) Free(memory);
  }
}

TEST_F(StreamAwarePoolTest, AThriftyPoolTakesFromOthersRatherThanGrow) {
  for (bool thrifty : {false, true}) {
    MakePool(1000 * kMegabyte, Growing(thrifty));
    // One group after the other has 64 MiB in use.
    for (int round = 0; round < 3; ++round) {
      for (int group = 0; group < kGroups; ++group) {
        for (char* memory : GetMany(group, 16, 4 * kMegabyte)) Free(memory);
      }
    }
    const AllocatorStats stats = pool_->Stats();
    EXPECT_EQ(stats.peak_bytes_in_use, 64 * kMegabyte);
    const int64_t waits = record_.Take().size();
    if (thrifty) {
      EXPECT_LE(*stats.peak_pool_bytes,
                static_cast<int64_t>(1.1 * 64 * kMegabyte));
      EXPECT_GT(waits, 0);
      // One wait each time that memory changes owners, not for each tensor.
      EXPECT_LE(waits, 3 * kGroups * kGroups);
    } else {
      EXPECT_GE(*stats.peak_pool_bytes, 4 * 64 * kMegabyte);
      EXPECT_EQ(waits, 0);
    }
  }
}

TEST_F(StreamAwarePoolTest, AThriftyPoolGrowsRatherThanFail) {
  MakePool(100 * kMegabyte, Growing(/*thrifty=*/true));
  const std::vector<char*> used = GetMany(0, 20, 2 * kMegabyte);
  // No two adjacent chunks are free, and chunks of two regions never merge.
  for (int i = 0; i < 20; i += 2) Free(used[i]);
  EXPECT_NE(Get(1, 30 * kMegabyte), nullptr);
  EXPECT_GT(*pool_->Stats().pool_bytes, 60 * kMegabyte);
}

TEST_F(StreamAwarePoolTest, RegionsThatNobodyUsesGoBackForALargeRequest) {
  MakePool(16 * kMegabyte, Growing(false, 2 * kMegabyte));
  std::vector<char*> used;
  for (int i = 0; i < 8; ++i) used.push_back(Get(i % 2, 2 * kMegabyte));
  for (int i = 1; i < 8; ++i) Free(used[i]);
  EXPECT_EQ(Get(2, 15 * kMegabyte), nullptr);  // used[0] is still there
  EXPECT_NE(Get(2, 14 * kMegabyte), nullptr);
  EXPECT_EQ(extensions_.back(), 14);
  EXPECT_EQ(*pool_->Stats().pool_bytes, 16 * kMegabyte);
  EXPECT_EQ(MemoryOwner::Get()->Find(used[0]), groups_[0].get());
}

TEST_F(StreamAwarePoolTest, TakesLessWhereTheGpuHasLessThanItSaid) {
  MakePool(100 * kMegabyte, {}, /*on_gpu=*/70 * kMegabyte);
  EXPECT_NE(Get(1, 60 * kMegabyte), nullptr);
  EXPECT_LE(*pool_->Stats().pool_bytes, 70 * kMegabyte);
  EXPECT_EQ(Get(1, 60 * kMegabyte), nullptr);
}

// Small chunks in one group's cache are available to other groups.
TEST_F(StreamAwarePoolTest, WhatAGroupKeepsGoesToOthersBeforeThePoolGrows) {
  MakePool(2 * kMegabyte, Growing());
  std::vector<char*> used;
  for (int i = 0; i < 32; ++i) used.push_back(Get(i % 2, kMegabyte / 16));
  for (char* memory : used) Free(memory);
  EXPECT_EQ(pool_->Stats().bytes_in_use, 0);
  // From the group's own cache.
  char* own = Get(1, kMegabyte / 16);
  EXPECT_NE(std::find(used.begin(), used.end(), own), used.end());
  EXPECT_EQ(Waits(), "");
  EXPECT_NE(Get(2, kMegabyte), nullptr);
  EXPECT_EQ(Waits(), "2<0 2<1");
  EXPECT_EQ(extensions_, std::vector<int64_t>({2}));
}

// A wait covers all memory that was freed before it, cached or not.
TEST_F(StreamAwarePoolTest, WhatWasKeptWhenAGroupWaitedNeedsNoOtherWait) {
  MakePool(2 * kMegabyte);
  char* first = Get(1, kMegabyte);
  char* second = Get(1, kMegabyte / 4);
  char* third = Get(1, kMegabyte / 4);
  char* fourth = Get(1, kMegabyte / 2);
  Free(second);
  Free(first);
  ExpectGet(2, kMegabyte, first, "2<1");
  ExpectGet(2, kMegabyte / 4, second, "");
  // Memory freed since then needs another wait.
  Free(third);
  Free(fourth);
  ExpectGet(2, kMegabyte / 2, third, "2<1");
}

TEST_F(StreamAwarePoolTest, CountsForEachGroupAndForAll) {
  MakePool(8 * kMegabyte);
  char* of_0 = Get(0, 1000);
  Get(1, 5000);
  EXPECT_EQ(pool_->RequestedSize(of_0), 1000);
  EXPECT_EQ(pool_->AllocatedSize(of_0), 1024);
  EXPECT_EQ(pool_->StatsOfGroup(0).bytes_in_use, 1024);
  EXPECT_EQ(pool_->StatsOfGroup(1).bytes_in_use, 5120);
  EXPECT_EQ(pool_->Stats().bytes_in_use, 6144);
  EXPECT_EQ(pool_->Stats().bytes_limit, 8 * kMegabyte);
  Free(of_0);
  EXPECT_EQ(pool_->StatsOfGroup(0).bytes_in_use, 0);
  EXPECT_EQ(pool_->StatsOfGroup(0).peak_bytes_in_use, 1024);
  EXPECT_EQ(pool_->StatsOfGroup(0).num_allocs, 1);
  EXPECT_EQ(pool_->Stats().peak_bytes_in_use, 6144);
  pool_->ClearStats();
  EXPECT_EQ(pool_->Stats().peak_bytes_in_use, 5120);
  EXPECT_EQ(pool_->Stats().num_allocs, 0);
}

TEST_F(StreamAwarePoolTest, RefusesToFreeWhatItHasNot) {
  MakePool(8 * kMegabyte);
  char* memory = Get(0, 1000);
  Free(memory);
  EXPECT_DEATH(pool_->Free(memory), "is not in use");
  EXPECT_DEATH(pool_->Free(&memory), "is not in use");
}

// The sanitizer checks that each use is ordered after the last use by the
// previous owner. The test checks that no two groups have the memory at once.
TEST_F(StreamAwarePoolTest, RandomUseIsInOrderAndNeverShared) {
  int64_t waits = 0;
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto below = [&random](int n) { return static_cast<int>(random() % n); };
    StreamAwarePool::Options options =
        Growing(/*thrifty=*/seed % 4 > 1, seed % 8 > 3 ? 4 * kMegabyte : 0);
    options.allow_growth = seed % 2 == 1;
    MakePool(48 * kMegabyte, options);
    std::map<char*, size_t> live;
    int64_t in_use = 0;
    int refused = 0;
    for (int i = 0; i < 3000; ++i) {
      if (below(2) == 0 || live.empty()) {
        const int64_t bytes = int64_t{1} << below(23);
        char* memory = Get(below(kGroups), bytes + below(1000));
        if (memory == nullptr) {
          ++refused;
          EXPECT_GT(in_use + 2 * bytes, 20 * kMegabyte);
          continue;
        }
        const size_t size = pool_->AllocatedSize(memory);
        auto next = live.lower_bound(memory);
        if (next != live.end()) {
          EXPECT_LE(memory + size, next->first);
        }
        if (next != live.begin()) {
          --next;
          EXPECT_GE(memory, next->first + next->second);
        }
        live[memory] = size;
        in_use += size;
      } else {
        auto victim = std::next(live.begin(), below(live.size()));
        in_use -= victim->second;
        Free(victim->first);
        live.erase(victim);
      }
      ASSERT_EQ(pool_->Stats().bytes_in_use, in_use);
      ASSERT_LE(*pool_->Stats().pool_bytes, 48 * kMegabyte);
    }
    waits += record_.Take().size();
    for (const auto& [memory, size] : live) Free(memory);
    char* most = Get(below(kGroups), 40 * kMegabyte);
    ASSERT_NE(most, nullptr);
    Free(most);
    EXPECT_LT(refused, 1500);
  }
  EXPECT_GT(waits, 1000);
  EXPECT_EQ(sanitizer_.report_count(), 0);
}

TEST_F(StreamAwarePoolTest, ManyThreadsKeepWhatTheyWrote) {
  MakePool(64 * kMegabyte, Growing(/*thrifty=*/true));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      std::mt19937 random(t);
      std::vector<std::pair<char*, size_t>> live;
      auto free_one = [&](size_t i) {
        const auto [memory, size] = live[i];
        for (size_t k : {size_t{0}, size / 2, size - 1}) {
          ASSERT_EQ(memory[k], static_cast<char>(t + 1));
        }
        pool_->Free(memory);
        live.erase(live.begin() + i);
      };
      for (int i = 0; i < 3000; ++i) {
        if (live.size() < 20 && random() % 2 == 0) {
          const size_t size = 1 + random() % 100000;
          auto* memory = static_cast<char*>(
              pool_->Allocate(t % kGroups, size, /*retry=*/false));
          ASSERT_NE(memory, nullptr);
          std::memset(memory, t + 1, size);
          live.emplace_back(memory, size);
        } else if (!live.empty()) {
          free_one(random() % live.size());
        }
      }
      while (!live.empty()) free_one(0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool_->Stats().bytes_in_use, 0);
}

}  // namespace
}  // namespace tensorflow::multistream
