// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A vector clock covers raised positions, and positions of joined clocks.

#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace tensorflow::multistream {
namespace {

VectorClock Of(int64_t of_group_0, int64_t of_group_1) {
  VectorClock clock;
  clock.Raise(0, of_group_0);
  clock.Raise(1, of_group_1);
  return clock;
}

TEST(VectorClockTest, CoversWhatLiesBeforeAndNeverGoesBack) {
  VectorClock clock = Of(3, 0);
  EXPECT_TRUE(clock.Covers(0, 3));
  EXPECT_FALSE(clock.Covers(0, 4));
  EXPECT_FALSE(clock.Covers(1, 1));
  EXPECT_FALSE(clock.Covers(7, 1)) << "a group that was never raised";
  EXPECT_TRUE(clock.Covers(7, 0));
  clock.Raise(0, 2);
  EXPECT_EQ(clock[0], 3);
  clock.Join(Of(1, 5));
  EXPECT_EQ(clock[0], 3);
  EXPECT_EQ(clock[1], 5);
}

TEST(VectorClockTest, JoinsAndMeetsClocksOfMoreGroups) {
  VectorClock of_three = Of(1, 2);
  of_three.Raise(2, 9);
  VectorClock joined = Of(4, 1);
  joined.Join(of_three);
  EXPECT_EQ(joined[0], 4);
  EXPECT_EQ(joined[1], 2);
  EXPECT_EQ(joined[2], 9);
  joined.Meet(Of(3, 3));
  EXPECT_EQ(joined[0], 3);
  EXPECT_EQ(joined[1], 2);
  EXPECT_EQ(joined[2], 0);
}

TEST(VectorClockTest, ASharedClockKeepsTheHighestOfAllThreads) {
  constexpr int kThreads = 4;
  SharedVectorClock shared(2);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&shared, t] {
      for (int value = t; value < 100000; value += kThreads) {
        shared.Raise(0, value);
        EXPECT_TRUE(shared.Covers(0, value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  shared.Join(Of(1, 4));
  EXPECT_FALSE(shared.Covers(1, 5));
  const VectorClock read = shared.Read();
  EXPECT_EQ(read[0], 99999);
  EXPECT_EQ(read[1], 4);
}

}  // namespace
}  // namespace tensorflow::multistream
