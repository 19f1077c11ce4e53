// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which events does a step on an emulated GPU leave in a trace?

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/watched_thread.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

// The interface that Python calls.
extern "C" int TFMS_TraceStart(int64_t most_events, char* message, int size);
extern "C" const char* TFMS_TraceStop(int64_t* bytes);

namespace tensorflow::multistream {
namespace {

constexpr int kLayers = 3;

class EmulatedTraceTest : public EmulatedRuntimeTest {
 protected:
  void RunOn(int group) {
    const ScopedStreamGroup pinned(group);
    Layers(session_.get(), Input(1));
  }
  std::vector<TraceEvent> Of(TraceKind kind) const {
    std::vector<TraceEvent> of_kind;
    for (const TraceEvent& event : events_) {
      if (event.kind == kind) of_kind.push_back(event);
    }
    return of_kind;
  }
  // Ends the trace when the group's stream has completed its work.
  void StopAfter(int group) {
    EXPECT_TRUE(Group(group)->Synchronize().ok());
    events_ = Trace::Get()->Stop().events;
  }

  std::vector<TraceEvent> events_;
  const std::unique_ptr<Session> session_ = SessionOf(DenseLayers(kLayers));
};

TEST_F(EmulatedTraceTest, AStepContainsItsKernelsInOrderAndTheCopyOfItsInput) {
  ASSERT_TRUE(Trace::Get()->Start(1000));
  RunOn(2);
  StopAfter(2);
  const auto steps = Of(TraceKind::kStep);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].group, 2);
  const auto kernels = Of(TraceKind::kKernel);
  ASSERT_EQ(kernels.size(), 2 * kLayers);
  int64_t busy_until = steps[0].begin;
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].gpu, 0);
    EXPECT_EQ(kernels[i].group, 2);
    EXPECT_EQ(kernels[i].type, i % 2 == 0 ? "MatMul" : "Tanh");
    EXPECT_GE(kernels[i].begin, busy_until);
    EXPECT_GE(kernels[i].end, kernels[i].begin);
    busy_until = kernels[i].end;
  }
  EXPECT_LE(busy_until, steps[0].end);
  const auto copies = Of(TraceKind::kCopy);
  ASSERT_EQ(copies.size(), 1);
  EXPECT_EQ(copies[0].name, "host to GPU");
  EXPECT_EQ(copies[0].amount, 8 * 64 * sizeof(float));
}

TEST_F(EmulatedTraceTest, AStepEndsWhenItsStreamHasCompletedIt) {
  ASSERT_TRUE(Trace::Get()->Start(1000));
  Group(3)->Pause();
  RunOn(3);
  const int64_t resumed = Trace::Now();
  Group(3)->Resume();
  StopAfter(3);
  const auto steps = Of(TraceKind::kStep);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_GE(steps[0].end, resumed);
}

TEST_F(EmulatedTraceTest, ItStopsWhenTheStreamsHaveCompletedWhatTheyHave) {
  ASSERT_EQ(TFMS_TraceStart(1000, nullptr, 0), 0);
  Group(3)->Pause();
  RunOn(3);
  int64_t bytes = 0;
  std::string lines;
  {
    WatchedThread stop([&] { lines = TFMS_TraceStop(&bytes); });
    EXPECT_FALSE(stop.EndsBeforeItSleeps());
    Group(3)->Resume();
  }
  EXPECT_EQ(lines.size(), bytes);
  EXPECT_TRUE(absl::StrContains(lines, "\nstep\t0\t3\t")) << lines;
}

TEST_F(EmulatedTraceTest, AWaitNamesWhomItWaitsFor) {
  ASSERT_TRUE(Trace::Get()->Start(1000));
  Group(1)->OrderAfter(Group(3));
  StopAfter(1);
  const auto waits = Of(TraceKind::kWait);
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(waits[0].group, 1);
  EXPECT_EQ(waits[0].amount, 3);
}

}  // namespace
}  // namespace tensorflow::multistream
