// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Random requests, and concurrent threads: memory from the pool is ordered
// after earlier uses, and has one user at a time.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool_fixture.h"

namespace tensorflow {
namespace multistream {
namespace {

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

// The sanitizer checks that each use is ordered after the last use by the
// previous owner. The test checks that no two groups have the memory at once.
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
