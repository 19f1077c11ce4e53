/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

// Address space. Refuses what would make it more than `most` bytes.
class Memory : public SubAllocator {
 public:
  Memory(int64_t most, std::vector<int64_t>* extensions)
      : SubAllocator({}, {}), most_(most), extensions_(extensions) {}
  ~Memory() override { EXPECT_EQ(taken_, 0); }

  void* Alloc(size_t alignment, size_t num_bytes,
              size_t* bytes_received) override {
    *bytes_received = 0;
    if (taken_ + static_cast<int64_t>(num_bytes) > most_) return nullptr;
    void* memory = mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    taken_ += num_bytes;
    extensions_->push_back(num_bytes);
    *bytes_received = num_bytes;
    return memory;
  }
  void Free(void* memory, size_t num_bytes) override {
    taken_ -= num_bytes;
    munmap(memory, num_bytes);
  }
  bool SupportsCoalescing() const override { return false; }

 private:
  const int64_t most_;
  std::vector<int64_t>* const extensions_;
  int64_t taken_ = 0;
};

// Tells a sanitizer of its waits.
class WatchedGroup : public FakeStreamGroup {
 public:
  WatchedGroup(int index, StreamRecord* record, Sanitizer* sanitizer)
      : FakeStreamGroup(0, index, record), sanitizer_(sanitizer) {}

  void WaitFor(StreamGroup* other) override {
    FakeStreamGroup::WaitFor(other);
    sanitizer_->WaitForTail(index(), other->index());
    if (once_it_waits) std::exchange(once_it_waits, nullptr)();
  }
  absl::Status Synchronize() override {
    sanitizer_->HostSynchronized(index());
    return absl::OkStatus();
  }

  std::function<void()> once_it_waits;

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

  // All of `limit` at once, unless `options` say otherwise.
  void MakePool(int64_t limit, StreamAwarePool::Options options = {},
                int64_t on_gpu = int64_t{1} << 40) {
    options.limit = limit;
    std::vector<StreamGroup*> groups;
    for (const auto& group : groups_) groups.push_back(group.get());
    pool_ = std::make_unique<StreamAwarePool>(
        std::make_unique<Memory>(on_gpu, &extensions_), groups, options);
  }

  // The next pool may get the same addresses.
  void DropPool() {
    for (int i = 0; i < kGroups; ++i) sanitizer_.HostSynchronized(i);
    pool_.reset();
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
  // Leaves no fresh memory: all of it is `group`'s, and free.
  void UseAll(int group, int64_t bytes) {
    char* all = Get(group, bytes);
    ASSERT_NE(all, nullptr);
    Free(all);
  }
  using Calls = std::vector<std::string>;
  // Since they were asked for last.
  int64_t Waits() { return record_.Take().size(); }

  StreamRecord record_;
  Sanitizer sanitizer_;
  std::vector<std::unique_ptr<WatchedGroup>> groups_;
  std::vector<int64_t> extensions_;
  std::unique_ptr<StreamAwarePool> pool_;
};

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
  // The rest is still the other one's.
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
  // Half of used[0] is left, which group 2 has waited for.
  EXPECT_EQ(Get(2, kMegabyte / 4), used[0] + kMegabyte / 2);
  EXPECT_EQ(record_.Take(), Calls());
}

// 3 waits for 2, which then waits for 1: what 2 has from 1 since is not what 3
// has waited for.
TEST_F(StreamAwarePoolTest, WaitsOfOthersSinceAWaitDoNotCount) {
  MakePool(256 * kMegabyte);
  char* of_1 = Get(1, 128 * kMegabyte);
  char* of_2 = Get(2, 64 * kMegabyte);
  Get(3, 64 * kMegabyte);
  Free(of_1);
  Free(of_2);
  ASSERT_EQ(Get(3, 64 * kMegabyte), of_2);
  EXPECT_EQ(record_.Take(), Calls({"3 waits for 2"}));
  // Takes more than it uses.
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
      // One for each time that the memory changes hands, not for each tensor.
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
  // No two neighbours are free, and regions are no neighbours.
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

// Small chunks that a group keeps are there for whoever needs the memory.
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
    // Kept by the group itself.
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

// A wait is for what was freed before it, kept or not.
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
  // Since: another one.
  Free(third);
  Free(fourth);
  ASSERT_EQ(Get(2, kMegabyte / 2), third);
  EXPECT_EQ(record_.Take(), Calls({"2 waits for 1"}));
}

// Freeing takes no lock that a wait takes.
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

TEST_F(StreamAwarePoolTest, WaitsForMemoryThatAnotherThreadFrees) {
  StreamAwarePool::Options options;
  options.allow_retry = true;
  MakePool(8 * kMegabyte, options);
  void* all = pool_->Allocate(0, 8 * kMegabyte, /*retry=*/true);
  EXPECT_EQ(pool_->Allocate(1, 1, /*retry=*/false), nullptr);
  std::thread other([&] { pool_->Free(all); });
  EXPECT_NE(pool_->Allocate(1, kMegabyte, /*retry=*/true), nullptr);
  other.join();
}

// The sanitizer checks that each use comes after the last one of the group that
// had the memory before; the test that no two have it at once.
TEST_F(StreamAwarePoolTest, RandomUseIsInOrderAndNeverShared) {
  int64_t waits = 0;
  for (int seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    auto below = [&random](int n) { return static_cast<int>(random() % n); };
    StreamAwarePool::Options options;
    options.allow_growth = seed % 2 == 1;
    options.thrifty = seed % 4 > 1;
    if (seed % 8 > 3) options.most_per_extension = 4 * kMegabyte;
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
    waits += Waits();
    for (const auto& [memory, size] : live) Free(memory);
    char* most = Get(below(kGroups), 40 * kMegabyte);
    ASSERT_NE(most, nullptr);
    Free(most);
    EXPECT_LT(refused, 1500);
    DropPool();
  }
  EXPECT_GT(waits, 1000);
  EXPECT_EQ(sanitizer_.report_count(), 0);
}

TEST_F(StreamAwarePoolTest, ManyThreadsKeepWhatTheyWrote) {
  StreamAwarePool::Options options;
  options.allow_growth = true;
  options.thrifty = true;
  MakePool(64 * kMegabyte, options);
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
}  // namespace multistream
}  // namespace tensorflow
