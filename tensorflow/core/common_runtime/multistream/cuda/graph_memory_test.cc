// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"

#include <gtest/gtest.h>

namespace tensorflow::multistream {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Sizes that were measured.
TEST(GraphMemoryTest, KernelsWithMoreParametersTakeMore) {
  EXPECT_EQ(DriverBytesOfParameters(16), DriverBytesOfParameters(1152));
  EXPECT_LT(DriverBytesOfParameters(1152), DriverBytesOfParameters(1280));
  EXPECT_EQ(DriverBytesOfParameters(1280), DriverBytesOfParameters(2048));
  EXPECT_LT(DriverBytesOfParameters(2048), DriverBytesOfParameters(2304));
  EXPECT_EQ(DriverBytesOfParameters(2304), DriverBytesOfParameters(4096));
}

TEST(GraphMemoryTest, WithoutKnownParametersAKernelTakesWhatACopyDoes) {
  EXPECT_EQ(DriverBytesOfParameters(0), DriverBytesOfCopy());
}

TEST(GraphMemoryTest, MemoryOfGraphsIsTakenInWholePortions) {
  EXPECT_EQ(PoolBytesOfAllocation(0), 0);
  EXPECT_EQ(PoolBytesOfAllocation(1), 32 * kMiB);
  EXPECT_EQ(PoolBytesOfAllocation(32 * kMiB), 32 * kMiB);
  EXPECT_EQ(PoolBytesOfAllocation(32 * kMiB + 1), 64 * kMiB);
}

}  // namespace
}  // namespace tensorflow::multistream
