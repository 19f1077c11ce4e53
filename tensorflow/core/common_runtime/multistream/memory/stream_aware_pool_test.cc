// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool_fixture.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST_F(StreamAwarePoolTest, AGroupGetsWhatItFreedWithoutAWait) {
  MakePool(8 * kMegabyte);
  char* first = Get(1, 1000);
  Free(first);
  EXPECT_EQ(Get(1, 1024), first);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamAwarePoolTest, FreshMemoryComesBeforeThatOfOthers) {
  MakePool(8 * kMegabyte);
  char* first = Get(1, kMegabyte);
  Free(first);
  EXPECT_NE(Get(2, kMegabyte), first);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamAwarePoolTest, MemoryOfAnotherGroupCostsAWaitForIt) {
  MakePool(8 * kMegabyte);
  UseAll(1, 8 * kMegabyte);
  EXPECT_NE(Get(2, 5 * kMegabyte), nullptr);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
  // Group 1 still owns the rest.
  EXPECT_NE(Get(1, 3 * kMegabyte), nullptr);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamAwarePoolTest, OneGroupMayUseAllAndAllAreOneLimit) {
  MakePool(8 * kMegabyte);
  EXPECT_EQ(Get(0, 8 * kMegabyte + 1), nullptr);
  char* all = Get(0, 8 * kMegabyte);
  EXPECT_NE(all, nullptr);
  EXPECT_EQ(Get(1, 1), nullptr);
  Free(all);
  EXPECT_NE(Get(3, 8 * kMegabyte), nullptr);
  EXPECT_EQ(extensions_, std::vector<int64_t>({8 * kMegabyte}));
}

TEST_F(StreamAwarePoolTest, NothingAndMoreThanTheLimitAreRefusedAtOnce) {
  StreamAwarePool::Options options;
  options.allow_retry = true;
  MakePool(8 * kMegabyte, options);
  for (size_t bytes :
       {size_t{0}, size_t{8 * kMegabyte + 1}, SIZE_MAX - 100, SIZE_MAX}) {
    EXPECT_EQ(pool_->Allocate(0, bytes, /*retry=*/true), nullptr) << bytes;
  }
  EXPECT_EQ(pool_->Stats().num_allocs, 0);
}

TEST_F(StreamAwarePoolTest, AWaitServesAllThatWasFreedBefore) {
  MakePool(8 * kMegabyte);
  std::vector<char*> of_1;
  for (int i = 0; i < 8; ++i) of_1.push_back(Get(1, kMegabyte));
  Free(of_1[0]);
  Free(of_1[2]);
  EXPECT_EQ(Get(2, kMegabyte), of_1[0]);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
  EXPECT_EQ(Get(2, kMegabyte), of_1[2]);
  EXPECT_EQ(record_.Take(), Calls());
  Free(of_1[4]);
  EXPECT_EQ(Get(2, kMegabyte), of_1[4]);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
}

TEST_F(StreamAwarePoolTest, WhatNeedsNoWaitIsTakenFirst) {
  MakePool(8 * kMegabyte);
  std::vector<char*> used = {Get(1, kMegabyte), Get(3, kMegabyte),
                             Get(1, 6 * kMegabyte)};
  Free(used[0]);
  EXPECT_EQ(Get(2, kMegabyte / 2), used[0]);
  record_.Take();
  Free(used[1]);
  // Half of used[0] is left. Group 2 has already waited for it.
  EXPECT_EQ(Get(2, kMegabyte / 4), used[0] + kMegabyte / 2);
  EXPECT_EQ(record_.Take(), Calls());
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
  ASSERT_EQ(Get(3, 64 * kMegabyte), of_2);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for 2"}));
  // Group 2 takes a larger slab than it uses.
  ASSERT_EQ(Get(2, 1024), of_1);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
  ASSERT_EQ(MemoryOwner::Get()->Find(of_1 + 2 * kMegabyte - 1),
            groups_[2].get());
  EXPECT_EQ(Get(3, kMegabyte), of_1 + 1024);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for 2"}));
}

TEST_F(StreamAwarePoolTest, FreeChunksSideBySideMakeALargeOne) {
  MakePool(8 * kMegabyte);
  std::vector<char*> used;
  for (int i = 0; i < 8; ++i) used.push_back(Get(i % kGroups, kMegabyte));
  for (int i : {1, 2, 3, 6}) Free(used[i]);
  EXPECT_EQ(Get(0, 4 * kMegabyte), nullptr);
  EXPECT_EQ(record_.Take(), Calls());
  EXPECT_EQ(Get(0, 2 * kMegabyte + 1), used[1]);
  EXPECT_EQ(record_.Take(),
            Calls({"0 waits for 1", "0 waits for 2", "0 waits for 3"}));
}

TEST_F(StreamAwarePoolTest, NeighboursOfOneGroupAreOneChunk) {
  MakePool(4 * kMegabyte);
  std::vector<char*> used;
  for (int i = 0; i < 4; ++i) used.push_back(Get(1, kMegabyte));
  for (int i : {0, 2, 3, 1}) Free(used[i]);
  EXPECT_EQ(Get(1, 4 * kMegabyte), used[0]);
  EXPECT_EQ(record_.Take(), Calls());
}

TEST_F(StreamAwarePoolTest, GrowsByDoublingUnlessThereIsALimit) {
  StreamAwarePool::Options options;
  options.allow_growth = true;
  MakePool(100 * kMegabyte, options);
  for (int i = 0; i < 8; ++i) Get(0, 2 * kMegabyte);
  EXPECT_EQ(extensions_, std::vector<int64_t>({2 * kMegabyte, 4 * kMegabyte,
                                               8 * kMegabyte, 16 * kMegabyte}));
  Get(1, 20 * kMegabyte);
  EXPECT_EQ(extensions_.back(), 32 * kMegabyte);
}

TEST_F(StreamAwarePoolTest, AnExtensionIsNotLargerThanItsLimitOrWhatIsAsked) {
  StreamAwarePool::Options options;
  options.allow_growth = true;
  options.most_per_extension = 4 * kMegabyte;
  MakePool(100 * kMegabyte, options);
  for (int i = 0; i < 8; ++i) Get(0, 2 * kMegabyte);
  EXPECT_EQ(extensions_,
            std::vector<int64_t>({2 * kMegabyte, 4 * kMegabyte, 4 * kMegabyte,
                                  4 * kMegabyte, 4 * kMegabyte}));
  Get(1, 20 * kMegabyte);
  EXPECT_EQ(extensions_.back(), 20 * kMegabyte);
}

TEST_F(StreamAwarePoolTest, AThriftyPoolTakesFromOthersRatherThanGrow) {
  for (bool thrifty : {false, true}) {
    StreamAwarePool::Options options;
    options.allow_growth = true;
    options.thrifty = thrifty;
    extensions_.clear();
    MakePool(1000 * kMegabyte, options);
    // One group after the other has 64 MiB in use.
    for (int round = 0; round < 3; ++round) {
      for (int group = 0; group < kGroups; ++group) {
        std::vector<char*> used;
        for (int i = 0; i < 16; ++i) used.push_back(Get(group, 4 * kMegabyte));
        for (char* memory : used) Free(memory);
      }
    }
    const AllocatorStats stats = pool_->Stats();
    EXPECT_EQ(stats.peak_bytes_in_use, 64 * kMegabyte);
    const int64_t waits = Waits();
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
    DropPool();
  }
}

TEST_F(StreamAwarePoolTest, AThriftyPoolGrowsRatherThanFail) {
  StreamAwarePool::Options options;
  options.allow_growth = true;
  options.thrifty = true;
  MakePool(100 * kMegabyte, options);
  std::vector<char*> used;
  for (int i = 0; i < 20; ++i) used.push_back(Get(0, 2 * kMegabyte));
  // No two adjacent chunks are free, and chunks of two regions never merge.
  for (int i = 0; i < 20; i += 2) Free(used[i]);
  EXPECT_NE(Get(1, 30 * kMegabyte), nullptr);
  EXPECT_GT(*pool_->Stats().pool_bytes, 60 * kMegabyte);
}

TEST_F(StreamAwarePoolTest, RegionsThatNobodyUsesGoBackForALargeRequest) {
  StreamAwarePool::Options options;
  options.allow_growth = true;
  options.most_per_extension = 2 * kMegabyte;
  MakePool(16 * kMegabyte, options);
  std::vector<char*> used;
  for (int i = 0; i < 8; ++i) used.push_back(Get(i % 2, 2 * kMegabyte));
  for (int i = 1; i < 8; ++i) Free(used[i]);
  EXPECT_EQ(Get(2, 15 * kMegabyte), nullptr);  // used[0] is still there
  EXPECT_NE(Get(2, 14 * kMegabyte), nullptr);
  EXPECT_EQ(extensions_.back(), 14 * kMegabyte);
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
  for (bool growth : {false, true}) {
    StreamAwarePool::Options options;
    options.allow_growth = growth;
    extensions_.clear();
    MakePool(2 * kMegabyte, options);
    std::vector<char*> used;
    for (int i = 0; i < 32; ++i) used.push_back(Get(i % 2, kMegabyte / 16));
    for (char* memory : used) Free(memory);
    EXPECT_EQ(pool_->Stats().bytes_in_use, 0);
    record_.Take();
    // From the group's own cache.
    char* own = Get(1, kMegabyte / 16);
    EXPECT_NE(std::find(used.begin(), used.end(), own), used.end());
    EXPECT_EQ(record_.Take(), Calls());
    char* large = Get(2, kMegabyte);
    EXPECT_NE(large, nullptr);
    EXPECT_EQ(record_.Take(), Calls({"2 waits for 0", "2 waits for 1"}));
    Free(own);
    Free(large);
    EXPECT_EQ(extensions_, std::vector<int64_t>({2 * kMegabyte}));
    DropPool();
  }
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
  ASSERT_EQ(Get(2, kMegabyte), first);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
  ASSERT_EQ(Get(2, kMegabyte / 4), second);
  EXPECT_EQ(record_.Take(), Calls());
  // Memory freed since then needs another wait.
  Free(third);
  Free(fourth);
  ASSERT_EQ(Get(2, kMegabyte / 2), third);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
}

// Memory may be freed during a wait: Free takes no lock that the wait holds.
TEST_F(StreamAwarePoolTest, WhatIsFreedDuringAWaitWasNotWaitedFor) {
  MakePool(2 * kMegabyte);
  char* first = Get(1, kMegabyte);
  char* second = Get(1, kMegabyte / 4);
  Get(1, 3 * kMegabyte / 4);
  Free(first);
  groups_[2]->once_it_waits = [&] {
    sanitizer_.Launch(1, "late", {{second, 1024, true, "t"}});
    Free(second);
  };
  ASSERT_EQ(Get(2, kMegabyte), first);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
  ASSERT_EQ(Get(2, kMegabyte / 4), second);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
