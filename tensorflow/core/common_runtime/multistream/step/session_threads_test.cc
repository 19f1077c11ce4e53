// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/session_threads.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

ConfigProto Pools(
    std::initializer_list<std::pair<int, const char*>> threads_and_names) {
  ConfigProto config;
  for (const auto& [threads, name] : threads_and_names) {
    auto* pool = config.add_session_inter_op_thread_pool();
    pool->set_num_threads(threads);
    pool->set_global_name(name);
  }
  return config;
}

TEST(SessionThreadsTest, NoneIfTheSessionAsksForNone) {
  EXPECT_EQ(SessionThreads::Of(Pools({})), nullptr);
  EXPECT_EQ(SessionThreads::Of(Pools({{0, ""}})), nullptr);
  EXPECT_NE(SessionThreads::Of(Pools({{1, ""}})), nullptr);
  EXPECT_NE(SessionThreads::Of(Pools({{0, ""}, {0, ""}})), nullptr);
}

// As when a closed session's last input pipeline ends in one of the threads.
TEST(SessionThreadsTest, TheLastUserMayBeOneOfThem) {
  auto session = SessionThreads::Of(Pools({{2, ""}}));
  std::shared_ptr<StepThreads> pool = session->OfGroup(0);
  absl::Notification closed, ended;
  // The closure holds the only reference when it ends.
  pool->Schedule(nullptr, [pool, &closed, &ended]() mutable {
    closed.WaitForNotification();
    EXPECT_TRUE(pool->RunThisThread());
    EXPECT_EQ(pool.use_count(), 1);
    pool = nullptr;
    ended.Notify();
  });
  EXPECT_FALSE(pool->RunThisThread());
  pool = nullptr;
  session = nullptr;
  closed.Notify();
  ended.WaitForNotification();
}

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
}  // namespace tensorflow::multistream
