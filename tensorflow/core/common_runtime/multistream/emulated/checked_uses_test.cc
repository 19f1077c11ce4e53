// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/checked_uses.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {
namespace {

constexpr size_t kBytes = 64;
constexpr char kRubbish = static_cast<char>(0xB7);

class CheckedUsesTest : public ::testing::Test {
 protected:
  struct Op {
    std::string name;
    std::vector<MemoryUse> uses;
    std::function<void()> run = [] {};
  };

  CheckedUsesTest() : a_(Take(kBytes)), b_(Take(kBytes)) {
    std::memset(a_, 'a', kBytes);
    std::memset(b_, 'b', kBytes);
  }
  ~CheckedUsesTest() override {
    for (char* address : taken_) memory_.device()->DeallocateRaw(address);
  }

  char* Take(size_t bytes) {
    taken_.push_back(
        static_cast<char*>(memory_.device()->AllocateRaw(64, bytes)));
    return taken_.back();
  }

  static MemoryUse Use(const char* at, bool writes, size_t bytes = kBytes) {
    const uint64_t begin = reinterpret_cast<uint64_t>(at);
    return {begin, begin + bytes, writes};
  }
  static MemoryUse Reads(const char* at) { return Use(at, false); }
  static MemoryUse Writes(const char* at) { return Use(at, true); }

  void Run(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      checked_.Begins({op.name});
      op.run();
      checked_.Launched({op.name, op.uses});
    }
  }
  void RunTwice(const std::vector<Op>& ops) {
    Run(ops);
    checked_.Again();
    Run(ops);
  }

  std::vector<char*> taken_;
  RecordingMemory memory_{cpu_allocator(), cpu_allocator()};
  CheckedUses checked_{&memory_};
  char* const a_;
  char* const b_;
};
using CheckedUsesDeathTest = CheckedUsesTest;

// Whether all bytes at `at` are `value`.
bool Is(const char* at, char value) {
  return std::string(at, kBytes) == std::string(kBytes, value);
}

TEST_F(CheckedUsesTest, OpsThatUseWhatTheySayFindWhatIsThere) {
  char* const c = Take(kBytes);
  std::vector<std::string> seen;
  // Writes another value in each run.
  const auto makes_a = [&] { std::memset(a_, '0' + seen.size(), kBytes); };
  const auto copies_a_to_b = [&] {
    seen.emplace_back(a_, kBytes);
    std::memcpy(b_, a_, kBytes);
  };
  const auto adds_to_b = [&] {
    for (size_t i = 0; i < kBytes; ++i) b_[i] += 1;
  };
  std::memset(c, 'c', kBytes);
  RunTwice({{"makes", {Writes(a_)}, makes_a},
            {"copies", {Reads(a_), Writes(b_)}, copies_a_to_b},
            {"adds", {Writes(b_)}, adds_to_b}});
  EXPECT_EQ(seen, std::vector<std::string>(
                      {std::string(kBytes, '0'), std::string(kBytes, '1')}));
  EXPECT_TRUE(Is(a_, '1'));
  EXPECT_TRUE(Is(b_, '2'));
  EXPECT_TRUE(Is(c, 'c'));
}

TEST_F(CheckedUsesTest, WhatAnOpIsNotSaidToUseIsRubbishWhileItRuns) {
  std::string seen;
  const auto reads_both = [&] { seen = {a_[0], a_[kBytes - 1], b_[0]}; };
  const std::vector<Op> ops = {{"reads", {Reads(b_)}, reads_both}};
  Run(ops);
  EXPECT_EQ(seen, "aab");
  checked_.Again();
  Run(ops);
  EXPECT_EQ(seen, std::string({kRubbish, kRubbish, 'b'}));
  EXPECT_TRUE(Is(a_, 'a'));
  EXPECT_TRUE(Is(b_, 'b'));
}

TEST_F(CheckedUsesTest, APartThatIsUsedIsAllOfItsBlock) {
  std::string seen;
  const auto uses_ends = [&] {
    seen.push_back(a_[0]);
    b_[0] = 'x';
  };
  RunTwice({{"ends",
             {Use(a_ + kBytes - 1, false, 1), Use(b_ + kBytes - 1, true, 1),
              Reads(b_)},  // any use that writes allows it
             uses_ends}});
  EXPECT_EQ(seen, "aa");
  EXPECT_EQ(b_[0], 'x');
}

TEST_F(CheckedUsesDeathTest, AnOpThatChangesWhatItDoesNotWriteEndsTheProcess) {
  int runs = 0;
  const auto changes_a = [&] {
    if (++runs == 2) a_[kBytes - 1] = 'x';
  };
  EXPECT_DEATH(RunTwice({{"harmless", {Reads(a_)}},
                         {"changes", {Reads(a_), Writes(b_)}, changes_a}}),
               "'changes' changed memory that it is said to read only");
  EXPECT_DEATH(
      RunTwice({{"harmless", {Reads(a_)}}, {"changes", {}, changes_a}}),
      "'changes' changed memory that it is said not to use");
}

// A step whose ops change order is not recorded anyway.
TEST_F(CheckedUsesTest, AnotherOrderOfOpsIsNotChecked) {
  std::string seen;
  const auto uses_a = [&] {
    seen.push_back(a_[0]);
    a_[0] += 1;
  };
  const Op one = {"one", {}, uses_a}, other = {"other", {}, uses_a};
  Run({one, other});
  checked_.Again();
  Run({other, one, one});
  EXPECT_EQ(seen, "abcde");
  EXPECT_EQ(a_[0], 'f');
}

TEST_F(CheckedUsesTest, SmallMemoryIsCheckedForManyOps) {
  char seen = 0;
  std::vector<Op> ops(1000, {"does nothing", {}});
  ops.push_back({"reads", {}, [&] { seen = a_[0]; }});
  RunTwice(ops);
  EXPECT_EQ(seen, kRubbish);
}

TEST_F(CheckedUsesTest, LargeMemoryIsNotChecked) {
  // Never written, so the machine does not back it with memory.
  Take(size_t{1} << 28);
  char seen = 0;
  RunTwice({{"reads", {}, [&] { seen = a_[0]; }}, {"does nothing", {}}});
  EXPECT_EQ(seen, 'a');
}

}  // namespace
}  // namespace tensorflow::multistream
