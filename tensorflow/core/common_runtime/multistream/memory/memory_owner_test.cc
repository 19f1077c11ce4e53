// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow::multistream {
namespace {

// The tests count in granules.
const void* Address(uintptr_t granule) {
  return reinterpret_cast<const void*>(granule * MemoryOwner::kGranule);
}

class MemoryOwnerTest : public ::testing::Test {
 protected:
  void Add(uintptr_t granule, size_t granules, StreamGroup* group) {
    owner_.Add(Address(granule), granules * MemoryOwner::kGranule, group);
  }
  bool Owns(uintptr_t granule, size_t granules, StreamGroup* group) {
    return owner_.Owns(Address(granule), granules * MemoryOwner::kGranule,
                       group);
  }
  // The owners of granules from `begin` on: "a", "b", or "-" for none.
  std::string Owners(uintptr_t begin, size_t granules) {
    std::string owners;
    for (size_t i = 0; i < granules; ++i) {
      const StreamGroup* owner = owner_.Find(Address(begin + i));
      owners += owner == nullptr ? '-' : owner == &a_ ? 'a' : 'b';
    }
    return owners;
  }

  StreamRecord record_;
  FakeStreamGroup a_{0, 0, &record_};
  FakeStreamGroup b_{0, 1, &record_};
  MemoryOwner owner_;
};

TEST_F(MemoryOwnerTest, ARegionIsOfTheGroupAddedLast) {
  struct Region {
    uintptr_t begin;
    size_t granules;
    char group;
  };
  const std::pair<std::vector<Region>, const char*> cases[] = {
      {{}, "----------------"},
      {{{1, 3, 'a'}}, "-aaa------------"},
      // Any order.
      {{{8, 2, 'a'}, {1, 2, 'b'}, {12, 2, 'b'}, {4, 3, 'a'}},
       "-bb-aaa-aa--bb--"},
      // An empty region.
      {{{1, 0, 'a'}, {4, 3, 'b'}, {5, 0, 'a'}}, "----bbb---------"},
      // The middle, and either end.
      {{{1, 6, 'a'}, {3, 2, 'b'}}, "-aabbaa---------"},
      {{{4, 6, 'a'}, {1, 5, 'b'}, {8, 5, 'b'}}, "-bbbbbaabbbbb---"},
      // A region over several takes them all.
      {{{1, 2, 'a'}, {4, 2, 'b'}, {7, 2, 'a'}, {10, 2, 'b'}, {2, 7, 'b'}},
       "-abbbbbbb-bb----"},
      // Neighbours of one group have no gap, and a part of them moves.
      {{{1, 3, 'a'}, {7, 3, 'a'}, {4, 3, 'a'}, {3, 3, 'a'}},
       "-aaaaaaaaa------"},
      {{{1, 3, 'a'}, {4, 3, 'a'}, {3, 2, 'b'}}, "-aabbaa---------"},
  };
  for (uintptr_t begin : {0x1000, 0x1ff8, 0x3ffff8}) {  // over parts' ends
    for (const auto& [regions, owners] : cases) {
      for (const Region& region : regions) {
        Add(begin + region.begin, region.granules,
            region.group == 'a' ? &a_ : &b_);
      }
      EXPECT_EQ(Owners(begin, 16), owners);
      Add(begin, 16, nullptr);
    }
  }
  EXPECT_EQ(owner_.Find(nullptr), nullptr);
  EXPECT_EQ(owner_.Find(reinterpret_cast<const void*>(~uintptr_t{0})), nullptr)
      << "an address that no process has";
}

TEST_F(MemoryOwnerTest, PartsOfAGranuleAreAllOfIt) {
  const auto* inside = static_cast<const char*>(Address(5)) + 17;
  owner_.Add(inside, 1, &a_);
  EXPECT_EQ(owner_.Find(Address(5)), &a_);
  EXPECT_EQ(owner_.Find(inside + 100), &a_);
  EXPECT_EQ(owner_.Find(Address(6)), nullptr);
  owner_.Add(inside, MemoryOwner::kGranule, &b_);
  EXPECT_EQ(owner_.Find(Address(6)), &b_);
  EXPECT_EQ(owner_.Find(Address(7)), nullptr);
}

// 2 MiB are 0x2000 granules, 1 GiB 0x400000.
TEST_F(MemoryOwnerTest, LargeRegionsAndPartsOfThem) {
  Add(0x3ff000, 0x10000, &a_);  // over a GiB's end, not in whole parts
  for (uintptr_t a : {0x3ff000, 0x3fffff, 0x400000, 0x401fff, 0x40efff}) {
    EXPECT_EQ(owner_.Find(Address(a)), &a_) << a;
  }
  EXPECT_EQ(owner_.Find(Address(0x3fefff)), nullptr);
  EXPECT_EQ(owner_.Find(Address(0x40f000)), nullptr);
  Add(0x402010, 3, &b_);  // in a part that was one group's
  EXPECT_EQ(owner_.Find(Address(0x40200f)), &a_);
  EXPECT_EQ(owner_.Find(Address(0x402010)), &b_);
  EXPECT_EQ(owner_.Find(Address(0x402013)), &a_);
  Add(0x402000, 0x4000, &b_);  // the whole part and the next one
  for (uintptr_t a : {0x402000, 0x402013, 0x403fff, 0x404000, 0x405fff}) {
    EXPECT_EQ(owner_.Find(Address(a)), &b_) << a;
  }
  EXPECT_EQ(owner_.Find(Address(0x401fff)), &a_);
  EXPECT_EQ(owner_.Find(Address(0x406000)), &a_);
}

TEST_F(MemoryOwnerTest, OwnsIsTrueOfAllGranulesOnly) {
  Add(0x100, 0x10, &a_);
  EXPECT_TRUE(Owns(0x100, 0x10, &a_));
  EXPECT_FALSE(
      owner_.Owns(Address(0x100), 0x10 * MemoryOwner::kGranule + 1, &a_));
  EXPECT_FALSE(Owns(0x100, 0x10, &b_));
  Add(0x108, 1, &b_);
  EXPECT_FALSE(Owns(0x100, 0x10, &a_));
  EXPECT_TRUE(Owns(0x100, 8, &a_));

  Add(0x3ff000, 0x10000, &a_);
  EXPECT_TRUE(Owns(0x3ff000, 0x10000, &a_));
  EXPECT_FALSE(Owns(0x3fefff, 0x10000, &a_));
  EXPECT_FALSE(Owns(0x3ff001, 0x10000, &a_));
  Add(0x404000, 1, &b_);
  EXPECT_FALSE(Owns(0x3ff000, 0x10000, &a_));
  EXPECT_TRUE(Owns(0x404001, 1, &a_));
  EXPECT_FALSE(Owns(0x10000000, 1, &a_));
}

TEST_F(MemoryOwnerTest, MemoryThatComesAndGoesNeedsNoMoreTables) {
  // In each of many parts of 2 MiB: adds memory, adds more, and returns all.
  for (uintptr_t part = 1; part <= 2000; ++part) {
    const uintptr_t begin = part * 0x2000;
    Add(begin + 0x10, 0x100, &a_);
    Add(begin + 0x400, 0x100, &b_);
    EXPECT_EQ(owner_.Find(Address(begin + 0x10)), &a_);
    EXPECT_EQ(owner_.Find(Address(begin + 0x400)), &b_);
    Add(begin + 0x10, 0x100, nullptr);
    EXPECT_EQ(owner_.Find(Address(begin + 0x10)), nullptr);
    EXPECT_EQ(owner_.Find(Address(begin + 0x400)), &b_);
    if (part % 2 == 0) {
      Add(begin + 0x400, 0x100, nullptr);
    } else {
      Add(begin, 0x2000, &a_);  // the whole part
      EXPECT_EQ(owner_.Find(Address(begin + 0x400)), &a_);
    }
  }
  EXPECT_EQ(owner_.tables_for_tests(), 1);
  // As many tables as are needed at one time.
  for (uintptr_t part = 1; part <= 7; ++part) Add(part * 0x2000, 1, &b_);
  EXPECT_EQ(owner_.tables_for_tests(), 7);
}

// Readers never miss a region while others are added, and never see the owner
// of another part's memory: a table is recycled from one part to another.
TEST_F(MemoryOwnerTest, ReadersSeeWhatIsThereWhileOthersAdd) {
  constexpr uintptr_t kOne = 0x2000, kOther = 0x8000, kKnown = 0x100000;
  Add(kKnown, 0x2000, &a_);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, added{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      while (!stop) {
        if (t == 0) {
          const int n = added;
          wrong += n > 0 && owner_.Find(Address(kKnown - n)) != &b_;
          wrong += owner_.Find(Address(kKnown + 0x80)) != &a_;
          continue;
        }
        // Always without an owner; the same place in the other part has one.
        wrong += owner_.Find(Address(kOne + 0x50)) != nullptr;
        StreamGroup* there = owner_.Find(Address(kOther + 0x50));
        wrong += there != nullptr && there != &b_;
      }
    });
  }
  for (int i = 1; i <= 800; ++i) {
    Add(kKnown - i, 1, &b_);
    added = i;
    Add(kOne + 0x10, 0x10, &a_);
    std::this_thread::yield();  // to a reader between its two loads
    Add(kOne + 0x10, 0x10, nullptr);
    Add(kOther, 0x100, &b_);
    std::this_thread::yield();  // so that the reader goes on
    Add(kOther, 0x100, nullptr);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(owner_.tables_for_tests(), 2);
}

// Hands out a region from its start, again and again. The process's table
// outlives the test, so no later test may get this memory: it is never freed.
class RegionAllocator : public Allocator {
 public:
  RegionAllocator() {
    // Keeps leak checkers quiet.
    static auto* all = new std::vector<char*>;
    all->push_back(memory_);
  }
  std::string Name() override { return "region"; }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return num_bytes <= kBytes ? memory_ : nullptr;
  }
  void DeallocateRaw(void* ptr) override {}
  std::optional<AllocatorStats> GetStats() override {
    AllocatorStats stats;
    stats.bytes_in_use = 123;
    stats.peak_bytes_in_use = 456;
    return stats;
  }
  bool ClearStats() override {
    ++clears_;
    return true;
  }
  void SetSafeFrontier(uint64_t count) override { frontier_ = count; }

  static constexpr size_t kBytes = 4096;
  char* const memory_ = static_cast<char*>(std::aligned_alloc(256, kBytes));
  int clears_ = 0;
  uint64_t frontier_ = 0;
};

class GroupAllocatorTest : public ::testing::Test {
 protected:
  GroupAllocator::RegionOf WholeRegion() {
    return [this](const void* address, size_t bytes) {
      ++asked_;
      return std::make_pair(static_cast<const void*>(region_.memory_),
                            size_t{RegionAllocator::kBytes});
    };
  }
  StreamGroup* OwnerOf(size_t offset) {
    return MemoryOwner::Get()->Find(region_.memory_ + offset);
  }

  StreamRecord record_;
  FakeStreamGroup a_{0, 0, &record_};
  FakeStreamGroup b_{0, 1, &record_};
  RegionAllocator region_;
  int asked_ = 0;
};

TEST_F(GroupAllocatorTest, AnAllocationMakesItsWholeRegionTheGroups) {
  GroupAllocator first(&region_, &a_, WholeRegion());
  EXPECT_EQ(first.AllocateRaw(64, 8192), nullptr);
  EXPECT_EQ(asked_, 0) << "an allocation that failed";
  for (int i = 0; i < 5; ++i) ASSERT_NE(first.AllocateRaw(64, 16), nullptr);
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(OwnerOf(0), &a_);
  EXPECT_EQ(OwnerOf(4095), &a_);
  // The first group has given the region back.
  GroupAllocator second(&region_, &b_, WholeRegion());
  second.AllocateRaw(64, 16, AllocationAttributes());
  EXPECT_EQ(OwnerOf(0), &b_);
}

// The reports of a sanitizer when a thread that launches an op of group
// `on_thread` allocates memory of the leader's, which the leader has used and
// freed, and group 1 then reads it without having waited.
int64_t ReportsOfAllocation(int on_thread) {
  static constexpr int kGpu = 7;  // used by no other test
  StreamRecord record;
  std::vector<std::unique_ptr<StreamGroup>> fakes;
  for (int i = 0; i < 2; ++i) {
    fakes.push_back(std::make_unique<FakeStreamGroup>(kGpu, i, &record));
  }
  GpuGroups groups(std::move(fakes), SanitizerMode::kLog);
  Sanitizer* log = groups.leader()->sanitizer();
  RegionAllocator region;
  GroupAllocator allocator(&region, groups.leader(), [&](const void*, size_t) {
    return std::make_pair(static_cast<const void*>(region.memory_),
                          size_t{RegionAllocator::kBytes});
  });
  void* address = allocator.AllocateRaw(64, 16);
  log->Launch(0, "before", {{address, 16, true, "output 0"}});
  allocator.DeallocateRaw(address);
  {
    GroupOnThread thread(groups.group(on_thread));
    address = allocator.AllocateRaw(64, 16);
  }
  log->Launch(1, "reader", {{address, 16, false, "input 0"}});
  MemoryOwner::Get()->Add(region.memory_, RegionAllocator::kBytes, nullptr);
  return log->report_count();
}

TEST_F(GroupAllocatorTest, WhatNoOpOfTheLeaderAsksForIsCopiedThere) {
  EXPECT_EQ(ReportsOfAllocation(/*on_thread=*/1), 0);
  EXPECT_EQ(ReportsOfAllocation(/*on_thread=*/0), 1);
}

TEST_F(GroupAllocatorTest, WithoutRegionsWhatIsHandedOutIsTheGroups) {
  GroupAllocator first(&region_, &a_, GroupAllocator::RegionOf());
  GroupAllocator second(&region_, &b_, GroupAllocator::RegionOf());
  first.AllocateRaw(64, 4096);
  second.AllocateRaw(64, 512);
  EXPECT_EQ(OwnerOf(0), &b_);
  EXPECT_EQ(OwnerOf(512), &a_);
  // The region's first part is entered already.
  second.AllocateRaw(64, 4096);
  EXPECT_EQ(OwnerOf(512), &b_);
}

// Fails at first, as while memory that other threads free is not free yet.
class LateAllocator : public RegionAllocator {
 public:
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return ++tries_ <= kLate
               ? nullptr
               : RegionAllocator::AllocateRaw(alignment, num_bytes);
  }
  static constexpr int kLate = 5;
  int tries_ = 0;
};

TEST_F(GroupAllocatorTest, WaitsForMemoryOfRecordingsThatNobodyHasAnyLonger) {
  LateAllocator late;
  GroupAllocator allocator(&late, &a_, GroupAllocator::RegionOf());
  {
    // Another thread has reclaimed recordings; their memory is not free yet.
    const ReclaimableMemory::Holder recording(a_.reclaimable());
    EXPECT_TRUE(a_.reclaimable()->IsHeld());
    EXPECT_FALSE(b_.reclaimable()->IsHeld());
    EXPECT_EQ(allocator.AllocateRaw(64, 16), late.memory_);
  }
  EXPECT_EQ(late.tries_, LateAllocator::kLate + 1);
  // No reclaimable memory is left to wait for.
  EXPECT_FALSE(a_.reclaimable()->IsHeld());
  late.tries_ = 0;
  EXPECT_EQ(allocator.AllocateRaw(64, 16), nullptr);
  EXPECT_EQ(late.tries_, 1);
}

TEST_F(GroupAllocatorTest, AnEmptyTensorReclaimsNothing) {
  LateAllocator late;
  GroupAllocator allocator(&late, &a_, GroupAllocator::RegionOf());
  const ReclaimableMemory::Holder recording(a_.reclaimable());
  EXPECT_EQ(allocator.AllocateRaw(64, 0), nullptr);
  EXPECT_EQ(late.tries_, 1);
}

TEST_F(GroupAllocatorTest, ForwardsWhatTheWrapperOfTensorFlowDoesNot) {
  GroupAllocator allocator(&region_, &a_, WholeRegion());
  const std::optional<AllocatorStats> stats = allocator.GetStats();
  ASSERT_TRUE(stats.has_value());
  EXPECT_EQ(stats->bytes_in_use, 123);
  EXPECT_EQ(stats->peak_bytes_in_use, 456);
  EXPECT_TRUE(allocator.ClearStats());
  EXPECT_EQ(region_.clears_, 1);
  allocator.SetSafeFrontier(7);
  EXPECT_EQ(region_.frontier_, 7);
}

}  // namespace
}  // namespace tensorflow::multistream
