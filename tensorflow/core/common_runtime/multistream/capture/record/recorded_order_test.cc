// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace tensorflow::multistream {
namespace {

using Waits = std::vector<std::vector<int>>;

MemoryUse Reads(uint64_t begin, uint64_t end) { return {begin, end, false}; }
MemoryUse Writes(uint64_t begin, uint64_t end) { return {begin, end, true}; }
// An op that is long enough to gain by running beside others.
RecordedOp Op(std::vector<MemoryUse> uses) { return {std::move(uses), 10}; }

TEST(RecordedOrderTest, OpsWaitForThoseThatUseTheSameMemory) {
  // Branches of one input run side by side.
  EXPECT_EQ(OrderOf({Op({Writes(0, 8)}), Op({Reads(0, 8), Writes(8, 16)}),
                     Op({Reads(0, 8), Writes(16, 24)}),
                     Op({Reads(8, 16), Writes(24, 32)}),
                     Op({Reads(16, 24), Reads(24, 32)})},
                    8, 8),
            Waits({{}, {0}, {0}, {1}, {3, 2}}));
  // Memory from 0 to 8 is free after the third op, and given again.
  EXPECT_EQ(OrderOf({Op({Writes(0, 8)}), Op({Writes(8, 16)}), Op({Reads(0, 8)}),
                     Op({Writes(4, 6)})},
                    8, 8),
            Waits({{}, {}, {0}, {2}}));
  // What overlaps is one place.
  EXPECT_EQ(OrderOf({Op({Writes(0, 8)}), Op({Writes(12, 16)}),
                     Op({Reads(6, 14)}), Op({Writes(16, 20)})},
                    8, 8),
            Waits({{}, {0}, {1}, {}}));
  // With one chain all wait.
  EXPECT_EQ(OrderOf({Op({}), Op({}), Op({})}, 1, 8), Waits({{}, {0}, {1}}));
}

TEST(RecordedOrderTest, OneOfWhichNothingIsKnownIsAlone) {
  std::vector<RecordedOp> ops = {Op({Writes(0, 8)}), Op({Writes(8, 16)}),
                                 Op({}), Op({Writes(16, 24)}),
                                 Op({Writes(24, 32)})};
  ops[2].alone = true;
  EXPECT_EQ(OrderOf(ops, 8, 8), Waits({{}, {}, {1, 0}, {2}, {2}}));
}

TEST(RecordedOrderTest, OnlySomeTakeAWorkspaceAtOnce) {
  std::vector<RecordedOp> ops(6);
  for (RecordedOp& op : ops) op.takes_workspace = op.launches = 1;
  EXPECT_EQ(OrderOf(ops, 8, 2), Waits({{}, {}, {0}, {1}, {2}, {3}}));
}

TEST(RecordedOrderTest, ItsLengthIsThatOfTheLongestPath) {
  const std::vector<RecordedOp> ops(5, {{}, /*launches=*/10});
  EXPECT_EQ(LengthOf(ops, {{}, {0}, {1}, {2}, {3}}), 50);
  // Two branches of two ops, and an op that waits for both.
  const int joined = LengthOf(ops, {{}, {0}, {}, {2}, {3, 1}});
  EXPECT_GT(joined, 30);
  EXPECT_LT(joined, 40);
}

TEST(RecordedOrderTest, ABranchStaysInItsChain) {
  // Ops of 6 branches take turns; each of two chains gets three branches.
  std::vector<RecordedOp> ops;
  for (uint64_t i = 0; i < 60; ++i) {
    ops.push_back({{{i % 6, i % 6 + 1, true}}, /*launches=*/1});
  }
  int waits = 0;
  for (const auto& of_op : OrderOf(ops, 2, 2)) {
    waits += static_cast<int>(of_op.size());
  }
  EXPECT_EQ(waits, 58);
}

// A random program, whose results must be the same in any order that the waits
// allow.
class RandomProgram {
 public:
  explicit RandomProgram(int seed) : random_(seed) {
    const int ops = Below(60) + 2, places = Below(20) + 2;
    for (int i = 0; i < ops; ++i) {
      RecordedOp op;
      op.launches = Below(4);
      op.alone = Below(20) == 0;
      op.takes_workspace = Below(4) == 0;
      for (int uses = Below(4); uses > 0; --uses) {
        // A use lies within 4 bytes.
        const uint64_t begin = 4 * Below(places) + Below(3);
        const uint64_t end = begin + 1 + Below(3);
        op.uses.push_back({begin, end, Below(2) == 0});
      }
      ops_.push_back(op);
    }
  }

  const std::vector<RecordedOp>& ops() const { return ops_; }
  int Below(int end) { return static_cast<int>(random_() % end); }

  // A checksum of the values that each op has read, and last one of all memory.
  std::vector<uint64_t> Run(const std::vector<int>& order) const {
    std::vector<uint64_t> memory(200), seen(ops_.size() + 1);
    std::vector<int> done;
    for (const int i : order) {
      uint64_t& sum = seen[i];
      if (ops_[i].alone) {
        // An op with unknown uses may read anything.
        for (const uint64_t value : memory) sum = 31 * sum + value;
      }
      for (const MemoryUse& use : ops_[i].uses) {
        for (uint64_t at = use.begin; at < use.end; ++at) {
          sum = 31 * sum + memory[at];
        }
      }
      for (const MemoryUse& use : ops_[i].uses) {
        if (!use.writes) continue;
        for (uint64_t at = use.begin; at < use.end; ++at) {
          memory[at] = 17 * sum + i + 1;
        }
      }
      if (ops_[i].alone) memory[199] += sum + i;
    }
    for (const uint64_t value : memory) seen.back() = 31 * seen.back() + value;
    return seen;
  }

  // A random order that respects `waits`. Fails if more than `chains` ops could
  // run at once.
  std::vector<int> AnyOrder(const Waits& waits, int chains) {
    std::vector<int> order;
    std::vector<bool> done(ops_.size());
    while (order.size() < ops_.size()) {
      std::vector<int> ready;
      for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
        const bool waits_for_none =
            std::all_of(waits[i].begin(), waits[i].end(),
                        [&](int before) { return done[before]; });
        if (!done[i] && waits_for_none) ready.push_back(i);
      }
      EXPECT_FALSE(ready.empty());
      EXPECT_LE(static_cast<int>(ready.size()), chains);
      if (ready.empty()) break;
      order.push_back(ready[Below(static_cast<int>(ready.size()))]);
      done[order.back()] = true;
    }
    return order;
  }

 private:
  std::mt19937 random_;
  std::vector<RecordedOp> ops_;
};

TEST(RecordedOrderTest, AnyOrderThatTheWaitsAllowGivesTheSame) {
  int64_t fewer = 0;
  for (int seed = 0; seed < 400; ++seed) {
    RandomProgram program(seed);
    const int chains = 1 + program.Below(10);
    const Waits waits =
        OrderOf(program.ops(), chains, 1 + program.Below(chains));
    ASSERT_EQ(waits.size(), program.ops().size());
    std::vector<int> recorded(waits.size());
    for (size_t i = 0; i < waits.size(); ++i) {
      recorded[i] = static_cast<int>(i);
      for (const int before : waits[i]) {
        ASSERT_LT(before, static_cast<int>(i));
      }
      fewer += waits[i].empty();
    }
    const std::vector<uint64_t> expected = program.Run(recorded);
    for (int again = 0; again < 10; ++again) {
      EXPECT_EQ(program.Run(program.AnyOrder(waits, chains)), expected)
          << "seed " << seed;
    }
  }
  EXPECT_GT(fewer, 800);  // not all ops are in sequence
}

// `chains` chains of `ops` ops, each of which writes what the next op reads.
std::vector<RecordedOp> Chains(int chains, int ops, int launches) {
  std::vector<RecordedOp> all;
  for (int i = 0; i < ops; ++i) {
    for (int c = 0; c < chains; ++c) {
      const uint64_t at = 1000 * c + 8 * i;
      all.push_back({{Reads(at, at + 8), Writes(at + 8, at + 16)}, launches});
    }
  }
  return all;
}

TEST(RecordedOrderTest, LongBranchesGain) {
  const Branches branches = BranchesOf(Chains(4, 20, 1), 8);
  EXPECT_TRUE(branches.gain);
  EXPECT_EQ(branches.chains, 8);
  EXPECT_EQ(branches.workspaces, 1);
  EXPECT_EQ(branches.launches, 80);
  EXPECT_EQ(branches.length, 20);
  EXPECT_EQ(branches.waits.size(), 80);
  // The most chains allowed.
  EXPECT_EQ(BranchesOf(Chains(4, 20, 1), 2).chains, 2);
  EXPECT_EQ(BranchesOf(Chains(4, 20, 1), 2).length, 40);
}

TEST(RecordedOrderTest, CellsOfTwoBranchesGainIfTheirBranchesAreLong) {
  // As in NASNet: each cell begins two branches, and joins them.
  const auto cells = [](int launches) {
    std::vector<RecordedOp> ops;
    for (uint64_t cell = 0; cell < 10; ++cell) {
      const uint64_t at = 100 * cell, next = at + 100;
      ops.push_back({{Reads(at, at + 8), Writes(at + 10, at + 18)}, launches});
      ops.push_back({{Reads(at, at + 8), Writes(at + 20, at + 28)}, launches});
      ops.push_back({{Reads(at + 10, at + 18), Reads(at + 20, at + 28),
                      Writes(next, next + 8)},
                     1});
    }
    return BranchesOf(ops, 4);
  };
  EXPECT_TRUE(cells(6).gain) << cells(6).length;
  EXPECT_FALSE(cells(4).gain) << cells(4).length;
}

TEST(RecordedOrderTest, WhatIsOneAfterTheOtherGainsNothing) {
  EXPECT_FALSE(BranchesOf(Chains(1, 100, 1), 4).gain);
  EXPECT_FALSE(BranchesOf({}, 4).gain);
  EXPECT_FALSE(BranchesOf(Chains(4, 20, 1), 1).gain);
  // The chains are too short.
  EXPECT_FALSE(BranchesOf(Chains(7, 2, 1), 4).gain);
  // A short chain beside a long one.
  std::vector<RecordedOp> ops = Chains(1, 80, 1);
  for (int i = 0; i < 10; ++i) {
    ops.push_back({{Reads(5000 + 8 * i, 5008 + 8 * i),
                    Writes(5008 + 8 * i, 5016 + 8 * i)},
                   1});
  }
  EXPECT_FALSE(BranchesOf(ops, 4).gain);
}

TEST(RecordedOrderTest, FewOpsThatTakeAWorkspaceRunSideBySide) {
  std::vector<RecordedOp> ops = Chains(8, 20, 1);
  for (RecordedOp& op : ops) op.takes_workspace = true;
  const Branches branches = BranchesOf(ops, 8);
  EXPECT_TRUE(branches.gain);
  EXPECT_EQ(branches.workspaces, 4);
  EXPECT_GE(branches.length, 40);
}

TEST(RecordedOrderTest, TooManyOpsHaveNoBranches) {
  EXPECT_FALSE(BranchesOf(Chains(4, 2100, 1), 4).gain);
}

}  // namespace
}  // namespace tensorflow::multistream
