// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/stock_threads.h"

#include <memory>

#include "gtest/gtest.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace multistream {
namespace {

SessionOptions InterOp(int threads) {
  SessionOptions options;
  options.config.set_inter_op_parallelism_threads(threads);
  return options;
}

TEST(StockThreadsTest, SessionsCountAsLongAsTheyLive) {
  EXPECT_EQ(StockThreads::InProcess(), 0);
  {
    const StockThreads one(3);
    const StockThreads other(5);
    EXPECT_EQ(StockThreads::InProcess(), 8);
  }
  EXPECT_EQ(StockThreads::InProcess(), 0);
}

TEST(StockThreadsTest, ASessionCountsWhatItsConfigurationAsksFor) {
  const auto first = StockThreads::Of(InterOp(70));
  EXPECT_EQ(StockThreads::InProcess(), 70);
  // The second session may run on the first one's threads.
  const auto second = StockThreads::Of(InterOp(2));
  EXPECT_EQ(StockThreads::InProcess(), 140);
  SessionOptions pools = InterOp(1);
  pools.config.add_session_inter_op_thread_pool()->set_num_threads(100);
  pools.config.add_session_inter_op_thread_pool()->set_num_threads(60);
  const auto third = StockThreads::Of(pools);
  EXPECT_EQ(StockThreads::InProcess(), 300);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
