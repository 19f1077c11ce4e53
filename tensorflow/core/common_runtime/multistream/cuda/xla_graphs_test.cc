// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/xla_graphs.h"

#include <gtest/gtest.h>

#include <thread>

#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"
#include "tsl/profiler/lib/profiler_lock.h"

namespace tensorflow::multistream {
namespace {

using tsl::profiler::ProfilerLock;

TEST(XlaGraphsTest, AThreadThatCapturesHasAProfiler) {
  CaptureGate gate;
  EXPECT_FALSE(ProfilerLock::HasActiveSession());
  {
    const GatedCapture capture(&gate);
    EXPECT_TRUE(ProfilerLock::HasActiveSession());
    std::thread([] { EXPECT_FALSE(ProfilerLock::HasActiveSession()); }).join();
  }
  EXPECT_FALSE(ProfilerLock::HasActiveSession());
}

TEST(XlaGraphsTest, AProfilerOfTheUserIsSeenByAllThreads) {
  CaptureGate gate;
  auto profiler = ProfilerLock::Acquire();
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  EXPECT_TRUE(ProfilerLock::HasActiveSession());
  { const GatedCapture capture(&gate); }
  EXPECT_TRUE(ProfilerLock::HasActiveSession());
  profiler->ReleaseIfActive();
  EXPECT_FALSE(ProfilerLock::HasActiveSession());
}

}  // namespace
}  // namespace tensorflow::multistream
