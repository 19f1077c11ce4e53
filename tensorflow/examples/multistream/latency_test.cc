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

#include "tensorflow/examples/multistream/latency.h"

#include <gtest/gtest.h>

namespace tensorflow {
namespace multistream {
namespace {

std::vector<float> OneTo(int n) {
  std::vector<float> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

TEST(LatencyTest, PercentileIsTheNearestRank) {
  const std::vector<float> sorted = {1, 2, 3, 4, 5};
  EXPECT_EQ(Percentile(sorted, 0), 1);
  EXPECT_EQ(Percentile(sorted, 20), 1);
  EXPECT_EQ(Percentile(sorted, 20.1), 2);
  EXPECT_EQ(Percentile(sorted, 50), 3);
  EXPECT_EQ(Percentile(sorted, 99), 5);
  EXPECT_EQ(Percentile(sorted, 100), 5);
}

TEST(LatencyTest, PercentileOfNothingIsZero) {
  EXPECT_EQ(Percentile({}, 50), 0);
}

TEST(LatencyTest, PercentileOfOneIsThatOne) {
  EXPECT_EQ(Percentile({7}, 1), 7);
  EXPECT_EQ(Percentile({7}, 99), 7);
}

TEST(LatencyTest, SummaryDoesNotDependOnOrder) {
  const LatencySummary summary = Summarize(OneTo(100));
  EXPECT_EQ(summary.mean, 50.5);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p95, 95);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.max, 100);
}

TEST(LatencyTest, SummaryOfNothingIsZero) { EXPECT_EQ(Summarize({}).p99, 0); }

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
