// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/recent_maximum.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace tensorflow::multistream {
namespace {

TEST(RecentMaximumTest, IsTheLargestOfThisPeriodAndTheLastOne) {
  RecentMaximum maximum;
  EXPECT_EQ(maximum.value(0), 0);
  maximum.Note(5, 0);
  maximum.Note(3, 0);
  EXPECT_EQ(maximum.value(0), 5);
  maximum.Note(4, 1);
  EXPECT_EQ(maximum.value(1), 5);
  EXPECT_EQ(maximum.value(2), 4);
  EXPECT_EQ(maximum.value(3), 0);
}

TEST(RecentMaximumTest, AnOlderPeriodNeitherCountsNorReturns) {
  RecentMaximum maximum;
  maximum.Note(7, 2);
  maximum.Note(100, 0);  // a thread that was late
  EXPECT_EQ(maximum.value(2), 7);
  EXPECT_EQ(maximum.value(0), 0);
  maximum.Note(1, 4);  // takes the place of period 2
  EXPECT_EQ(maximum.value(4), 1);
  EXPECT_EQ(maximum.value(1000), 0);
}

TEST(RecentMaximumTest, HugeValuesAreTheMost) {
  RecentMaximum maximum;
  maximum.Note(INT64_MAX, 9);
  EXPECT_EQ(maximum.value(9), RecentMaximum::kMost);
  EXPECT_EQ(maximum.value(11), 0);
}

TEST(RecentMaximumTest, ThreadsLoseNoMaximum) {
  RecentMaximum maximum;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&maximum, thread] {
      for (int i = 0; i < 10000; ++i) maximum.Note(4 * i + thread, 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(maximum.value(7), 39999);
}

}  // namespace
}  // namespace tensorflow::multistream
