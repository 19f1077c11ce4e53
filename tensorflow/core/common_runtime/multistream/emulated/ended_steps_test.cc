// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/data_flow_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST_F(EmulatedRuntimeTest, AFailedStepReleasesItsGroupAndOthersGoOn) {
  constexpr int kThreads = 8, kSteps = 25;
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  auto x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto checked = ops::CheckNumerics(root, x, "the message");
  ops::Square(root.WithOpName("y"), checked);
  const std::unique_ptr<Session> session = SessionOf(root);
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);

  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const bool bad = t % 2 == 1;
      Tensor x(bad ? std::numeric_limits<float>::quiet_NaN() : 3.0f + t);
      for (int i = 0; i < kSteps; ++i) {
        std::vector<Tensor> outputs;
        const absl::Status status =
            session->Run({{"x", x}}, {"y:0"}, {}, &outputs);
        if (bad) {
          if (status.code() != absl::StatusCode::kInvalidArgument ||
              status.message().find("the message") == std::string::npos) {
            ++wrong;
          }
        } else if (!status.ok() ||
                   outputs[0].scalar<float>()() != (3.0f + t) * (3.0f + t)) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before,
            kThreads / 2 * kSteps);
}

// A step that waits for an element of a queue before its part on the GPU.
Scope WaitsForAQueue() {
  Scope root = Scope::NewRootScope();
  Scope cpu = root.WithDevice("/device:CPU:0");
  Scope gpu = root.WithDevice("/device:GPU:0");
  auto queue = ops::FIFOQueue(cpu, DataTypeVector{DT_FLOAT});
  auto element = ops::QueueDequeue(cpu, queue, DataTypeVector{DT_FLOAT});
  ops::Square(gpu.WithOpName("y"), element[0]);
  auto one = ops::Const(cpu, 3.0f);
  ops::QueueEnqueue(cpu.WithOpName("enqueue"), queue, std::vector<Output>{one});
  return root;
}

TEST_F(EmulatedRuntimeTest, ASessionClosedInMidStepReleasesEveryGroup) {
  constexpr int kSteps = 6;
  std::unique_ptr<Session> session = SessionOf(WaitsForAQueue());
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kSteps; ++t) {
    threads.emplace_back([&] {
      std::vector<Tensor> outputs;
      if (!session->Run({}, {"y:0"}, {}, &outputs).ok()) ++cancelled;
    });
  }
  EXPECT_TRUE(Eventually(
      [] { return Total(&StreamGroupStats::steps_running) == kSteps; }));
  EXPECT_TRUE(session->Close().ok());
  for (std::thread& thread : threads) thread.join();
  session.reset();
  EXPECT_EQ(cancelled, kSteps);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before, kSteps);
}

TEST_F(EmulatedRuntimeTest, AStepThatTimesOutReleasesItsGroup) {
  const std::unique_ptr<Session> session = SessionOf(WaitsForAQueue());
  const int64_t failed_before = Total(&StreamGroupStats::steps_failed);
  RunOptions options;
  options.set_timeout_in_ms(100);
  std::vector<Tensor> outputs;
  EXPECT_EQ(session->Run(options, {}, {"y:0"}, {}, &outputs, nullptr).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(
      Eventually([] { return Total(&StreamGroupStats::steps_running) == 0; }));
  EXPECT_EQ(Total(&StreamGroupStats::steps_failed) - failed_before, 1);
  // The session still serves.
  ASSERT_TRUE(session->Run({}, {}, {"enqueue"}, nullptr).ok());
  ASSERT_TRUE(session->Run({}, {"y:0"}, {}, &outputs).ok());
  EXPECT_EQ(outputs[0].scalar<float>()(), 9.0f);
}

TEST_F(EmulatedRuntimeTest, ASessionClosedWhileThreadsRunStepsEndsCleanly) {
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::unique_ptr<Session> session = SessionOf(DenseLayers(4));
    std::atomic<bool> stop{false};
    std::atomic<int> ran{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        while (!stop) {
          std::vector<Tensor> outputs;
          if (!session->Run({{"x", Input(1)}}, {"y:0"}, {}, &outputs).ok()) {
            return;
          }
          ++ran;
        }
      });
    }
    EXPECT_TRUE(Eventually([&] { return ran > 20; }));
    EXPECT_TRUE(session->Close().ok());
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
