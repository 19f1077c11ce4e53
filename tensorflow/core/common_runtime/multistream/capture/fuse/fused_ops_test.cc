// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_step_fixture.h"

namespace tensorflow::multistream {
namespace {

// A momentum update: m += (g - m) * c; v -= m * c. Each update's gradient is
// made after the update before it, of what the next layer has handed on.
int Updates(FusedStep* step, int updates, int c, bool between = false) {
  int x = step->Other({0}, 1);
  for (int i = 0; i < updates; ++i) {
    const int m = 1 + 2 * i, v = m + 1;
    const int g = step->Other({x}, i + 1 < updates ? 2 : 1);
    const int difference = step->Elementwise(Arithmetic::kSubtract, {g, m}, 1);
    const int product =
        step->Elementwise(Arithmetic::kMultiply, {difference, c}, 1);
    step->Assign(Arithmetic::kAdd, m, product);
    const int change = step->Elementwise(Arithmetic::kMultiply, {m, c}, 1);
    step->Assign(Arithmetic::kSubtract, v, change);
    if (between) step->Alone();
    x = g;
  }
  step->Other({0}, 0);
  return 5 * updates;
}

TEST(FusedOpsTest, AllUpdatesOfAnOptimizerAreOneKernel) {
  constexpr int kUpdates = 10;
  FusedStep step(1 + 2 * kUpdates);
  const int c = step.Scalar();
  const int ops = Updates(&step, kUpdates, c);
  const FusedOps fused = FusedOpsOf(step.ops());
  ASSERT_EQ(fused.kernels.size(), 1);
  const FusedKernel& kernel = fused.kernels[0];
  EXPECT_EQ(kernel.clusters.size(), kUpdates);
  EXPECT_EQ(fused.saved, ops - 1);
  EXPECT_EQ(kernel.last, static_cast<int>(step.ops().size()) - 2);
  // g, m, c and v; the values between have no memory.
  int in_memory = 0;
  for (const FusedProgram::Slot& slot : kernel.program.slots) {
    in_memory += slot.is_read || slot.is_written;
  }
  EXPECT_EQ(in_memory, 4);
  // The gradients' memory would be given out again.
  EXPECT_EQ(fused.apart.size(), kUpdates - 1);
  EXPECT_EQ(fused.launched.size(), step.ops().size() - ops + 1);
  EXPECT_EQ(step.Run(fused, 1), step.Run());
}

// As Adam squares the gradient, and then takes the difference in its place.
TEST(FusedOpsTest, WhatReadsAValueJoinsWhatOverwritesTheValue) {
  constexpr int kUpdates = 4;
  FusedStep step(1 + 2 * kUpdates);
  for (int i = 0; i < kUpdates; ++i) {
    const int m = 1 + 2 * i, v = m + 1;
    const int g = step.Other({0}, 2);
    const int square = step.Elementwise(Arithmetic::kSquare, {g}, 1);
    const int difference = step.Elementwise(Arithmetic::kSubtract, {g, m}, 1,
                                            /*in_place=*/true);
    step.Assign(Arithmetic::kAdd, v, square);
    step.Assign(Arithmetic::kAdd, m, difference);
  }
  const FusedOps fused = FusedOpsOf(step.ops());
  ASSERT_FALSE(fused.kernels.empty());
  for (const FusedCluster& cluster : fused.kernels[0].clusters) {
    EXPECT_EQ(cluster.ops.size(), 4);
  }
  EXPECT_EQ(step.Run(fused, 1), step.Run());
}

TEST(FusedOpsTest, WhatSavesFewLaunchesStaysAsItIs) {
  FusedStep step(3);
  const int c = step.Scalar();
  Updates(&step, 1, c);
  const FusedOps fused = FusedOpsOf(step.ops());
  EXPECT_TRUE(fused.kernels.empty());
  EXPECT_EQ(fused.saved, 0);
  EXPECT_TRUE(fused.apart.empty());
  EXPECT_EQ(fused.launched.size(), step.ops().size());
  EXPECT_EQ(step.Run(fused, 1), step.Run());
}

TEST(FusedOpsTest, NoGroupReachesOverAnOpOfWhichNothingIsKnown) {
  constexpr int kUpdates = 4;
  FusedStep step(1 + 2 * kUpdates);
  const int c = step.Scalar();
  Updates(&step, kUpdates, c, /*between=*/true);
  const FusedOps fused = FusedOpsOf(step.ops());
  EXPECT_GE(fused.kernels.size(), kUpdates - 1);
  for (const FusedKernel& kernel : fused.kernels) {
    EXPECT_EQ(kernel.clusters.size(), 1);
  }
}

// Another op reads the variable between two updates of it.
TEST(FusedOpsTest, AnUpdateIsLaunchedBeforeAReader) {
  FusedStep step(2);
  const int c = step.Scalar();
  for (int i = 0; i < 12; ++i) {
    const int g = step.Other({0}, 1);
    const int product = step.Elementwise(Arithmetic::kMultiply, {g, c}, 1);
    step.Assign(Arithmetic::kAdd, 1, product);
    step.Other({1}, 0);
  }
  const FusedOps fused = FusedOpsOf(step.ops());
  EXPECT_EQ(fused.kernels.size(), 12);
  for (const FusedKernel& kernel : fused.kernels) {
    EXPECT_EQ(kernel.clusters.size(), 1);
  }
  EXPECT_EQ(step.Run(fused, 1), step.Run());
}

TEST(FusedOpsTest, ARepeatedScalarIsNotMadeInTheSameKernel) {
  FusedStep step(1);
  std::vector<int> outputs;
  for (int i = 0; i < 20; ++i) {
    const int x = step.Elementwise(Arithmetic::kSquare, {0}, 1);
    step.Elementwise(Arithmetic::kMultiply, {x, 0}, 0);
  }
  std::vector<RecordedOp> ops = step.ops();
  EXPECT_EQ(FusedOpsOf(ops).kernels.size(), 1);
  for (RecordedOp& op : ops) {
    if (op.elementwise->arithmetic != Arithmetic::kMultiply) continue;
    op.elementwise->operands[0].is_scalar = true;
  }
  for (const FusedKernel& kernel : FusedOpsOf(ops).kernels) {
    for (const FusedCluster& cluster : kernel.clusters) {
      EXPECT_EQ(cluster.ops.size(), 1);
    }
  }
}

// Memory beside a block, which another op uses together with the block, has no
// life of its own.
TEST(FusedOpsTest, AUseThatReachesBeyondABlockKeepsItsMemory) {
  constexpr int kUpdates = 4;
  FusedStep step(1 + 2 * kUpdates);
  const int c = step.Scalar();
  Updates(&step, kUpdates, c);
  std::vector<RecordedOp> ops = step.ops();
  EXPECT_FALSE(FusedOpsOf(ops).apart.empty());
  RecordedOp& other = ops.emplace_back();
  other.launches = 1;
  for (const RecordedOp& op : step.ops()) {
    for (const Allocation& made : op.made) {
      other.uses.push_back({made.begin, made.end + 4, false});
    }
  }
  const FusedOps fused = FusedOpsOf(ops);
  EXPECT_TRUE(fused.apart.empty());
  for (const FusedKernel& kernel : fused.kernels) {
    EXPECT_EQ(kernel.clusters.size(), 1);
  }
}

TEST(FusedOpsTest, OpsThatAreOthersWhenTheStepRunsAgainAreAnError) {
  constexpr int kUpdates = 4;
  FusedStep step(1 + 2 * kUpdates);
  const int c = step.Scalar();
  Updates(&step, kUpdates, c);
  const FusedOps fused = FusedOpsOf(step.ops());
  ASSERT_EQ(fused.kernels.size(), 1);
  const auto again = [&](auto change) {
    FusedCalls calls(fused);
    const FusedKernel* last = nullptr;
    for (size_t i = 0; i < step.ops().size(); ++i) {
      if (fused.kernel_of[i] < 0) continue;
      EXPECT_EQ(last, nullptr);
      std::optional<ElementwiseOp> op = step.ops()[i].elementwise;
      change(static_cast<int>(i), &op);
      last = calls.Add(static_cast<int>(i), op);
    }
    EXPECT_EQ(last, &fused.kernels[0]);
    return calls.CallsOf(*last).ok();
  };
  const int some = fused.kernels[0].clusters[2].ops[1];
  EXPECT_TRUE(again([](int, std::optional<ElementwiseOp>*) {}));
  EXPECT_FALSE(again([&](int i, auto* op) {
    if (i == some) op->reset();
  }));
  EXPECT_FALSE(again([&](int i, auto* op) {
    if (i == some) (*op)->operands[0].address += 4;
  }));
}

// Random steps leave the same values in any order that the waits allow.
TEST(FusedOpsTest, RandomSteps) {
  int saved = 0, apart = 0, kernels = 0;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::minstd_rand random(seed + 1);
    const auto below = [&random](int n) {
      return static_cast<int>(random() % n);
    };
    constexpr int kVariables = 12;
    FusedStep step(kVariables);
    const int c = step.Scalar();
    std::vector<std::pair<int, int>> live;  // value, uses that are left
    std::vector<int> flags;                 // bools, used once more
    const auto any = [&]() {
      if (live.empty() || below(3) == 0) return below(kVariables);
      const size_t k = live.size() - 1 - below(std::min<int>(4, live.size()));
      const int value = live[k].first;
      if (--live[k].second == 0) live.erase(live.begin() + k);
      return value;
    };
    const auto kept = [&]() {  // is never freed from now on
      return live.empty() || below(2) == 0 ? below(kVariables)
                                           : live[below(live.size())].first;
    };
    const int kinds = 4 + below(8);
    for (int i = 0; i < 60; ++i) {
      const int uses = 1 + below(2);
      const int kind = below(kinds);
      int value = -1;
      if (kind == 0) {
        value = step.Other({any(), any()}, uses);
      } else if (kind == 1 && below(8) == 0) {
        const int of = any();
        if (below(2) == 0) {
          step.Alone(below(kVariables), of);
        } else {
          value = step.MadeAlone(of, uses);
        }
      } else if (kind == 1 && below(6) == 0) {
        const int of = any();
        step.Other({of}, 0);
        step.UseNextBlockOf(of);
      } else if (kind == 1) {
        step.Other({any()}, 0);
      } else if (kind == 3 && below(4) == 0) {
        const int of = kept();
        value = step.Elementwise(Arithmetic::kMultiply,
                                 {any(), step.FirstOf(of)}, uses);
      } else if (kind == 3 && below(4) == 0) {
        const int of = kept();
        const int repeated = step.Repeated(of, /*each=*/below(2) == 0);
        value = below(2) ? step.Elementwise(Arithmetic::kCopy, {repeated}, uses)
                         : step.Elementwise(Arithmetic::kSubtract,
                                            {repeated, any()}, uses);
      } else if (kind == 4 && flags.size() < 3 && below(2) == 0) {
        flags.push_back(
            step.Elementwise(Arithmetic::kGreaterEqual, {any(), any()}, 1));
      } else if (kind == 4 && !flags.empty() && below(2) == 0) {
        value = step.Elementwise(Arithmetic::kSelect,
                                 {flags.back(), any(), any()}, uses);
        flags.pop_back();
      } else if (kind == 5 && below(3) == 0) {
        value = below(2) ? step.Elementwise(Arithmetic::kSquaredDifference,
                                            {any(), any()}, uses)
                         : step.Elementwise(Arithmetic::kAdd,
                                            {any(), any(), any()}, uses,
                                            /*in_place=*/below(2) == 0);
      } else if (kind == 2) {
        step.Assign(below(2) ? Arithmetic::kAdd : Arithmetic::kSubtract,
                    below(kVariables), any());
      } else if (kind == 3) {
        value = step.Elementwise(Arithmetic::kMultiply, {any(), c}, uses,
                                 below(2) == 0);
      } else if (kind == 4) {
        value = step.Elementwise(Arithmetic::kSquareRoot, {any()}, uses,
                                 below(2) == 0);
      } else {
        value = step.Elementwise(Arithmetic::kSubtract, {any(), any()}, uses);
      }
      if (value < 0) continue;
      if (kind != 0 || below(4) != 0) {
        live.push_back({value, uses});
      } else {
        live.push_back({step.View(value), 2});
        live.push_back({value, 2});
      }
    }
    const std::vector<float> right = step.Run();
    const FusedOps fused = FusedOpsOf(step.ops());
    saved += fused.saved;
    apart += static_cast<int>(fused.apart.size());
    kernels += static_cast<int>(fused.kernels.size());
    for (uint32_t order = 1; order < 4; ++order) {
      const std::vector<float> found = step.Run(fused, order);
      ASSERT_EQ(found.size(), right.size());
      ASSERT_EQ(
          std::memcmp(found.data(), right.data(), right.size() * sizeof(float)),
          0)
          << "seed " << seed << ", order " << order;
    }
  }
  // The steps are not so that nothing is tried.
  EXPECT_GT(saved, 5000);
  EXPECT_GT(apart, 500);
  EXPECT_GT(kernels, 500);
}

}  // namespace
}  // namespace tensorflow::multistream
