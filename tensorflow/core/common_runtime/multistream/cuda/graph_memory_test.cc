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

#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"

#include <gtest/gtest.h>

namespace tensorflow {
namespace multistream {
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
}  // namespace multistream
}  // namespace tensorflow
