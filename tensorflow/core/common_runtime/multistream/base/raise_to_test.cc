// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tensorflow {
namespace multistream {
namespace {

TEST(RaiseToTest, NeverLowers) {
  std::atomic<int> highest{3};
  RaiseTo(5, &highest);
  EXPECT_EQ(highest, 5);
  RaiseTo(4, &highest);
  EXPECT_EQ(highest, 5);
}

TEST(RaiseToTest, KeepsTheHighestOfAllThreads) {
  constexpr int kThreads = 4;
  std::atomic<int> highest{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&highest, t] {
      for (int value = t; value < 100000; value += kThreads) {
        RaiseTo(value, &highest);
        EXPECT_GE(highest, value);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(highest, 99999);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
