// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A vector clock covers raised positions, and positions of joined clocks.

#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"

#include <gtest/gtest.h>

namespace tensorflow {
namespace multistream {
namespace {

VectorClock Of(int64_t of_group_0, int64_t of_group_1) {
  VectorClock clock;
  clock.Raise(0, of_group_0);
  clock.Raise(1, of_group_1);
  return clock;
}

TEST(VectorClockTest, CoversWhatLiesBefore) {
  const VectorClock clock = Of(3, 0);
  EXPECT_TRUE(clock.Covers(0, 3));
  EXPECT_FALSE(clock.Covers(0, 4));
  EXPECT_FALSE(clock.Covers(1, 1));
  EXPECT_FALSE(clock.Covers(7, 1)) << "a group that was never raised";
  EXPECT_TRUE(clock.Covers(7, 0));
}

TEST(VectorClockTest, NeverGoesBack) {
  VectorClock clock = Of(3, 1);
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

TEST(VectorClockTest, OneThatIsSharedDoesTheSame) {
  SharedVectorClock shared(2);
  shared.Raise(0, 2);
  shared.Join(Of(1, 4));
  EXPECT_TRUE(shared.Covers(0, 2));
  EXPECT_FALSE(shared.Covers(1, 5));
  const VectorClock read = shared.Read();
  EXPECT_EQ(read[0], 2);
  EXPECT_EQ(read[1], 4);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
