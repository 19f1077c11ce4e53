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

  std::vector<TraceEvent> events_;
  const std::unique_ptr<Session> session_ = SessionOf(DenseLayers(kLayers));
};

TEST_F(EmulatedTraceTest, AStepEndsWhenItsStreamHasCompletedIt) {
  ASSERT_TRUE(Trace::Get()->Start(1000));
  Group(3)->Pause();
  RunOn(3);
  const int64_t resumed = Trace::Now();
  Group(3)->Resume();
  EXPECT_TRUE(Group(3)->Synchronize().ok());
  events_ = Trace::Get()->Stop().events;
  const auto steps = Of(TraceKind::kStep);
  ASSERT_EQ(steps.size(), 1);
  EXPECT_GE(steps[0].end, resumed);
  // It copied its input.
  const auto copies = Of(TraceKind::kCopy);
  ASSERT_EQ(copies.size(), 1);
  EXPECT_EQ(copies[0].name, "host to GPU");
  EXPECT_EQ(copies[0].amount, 8 * 64 * sizeof(float));
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

}  // namespace
}  // namespace tensorflow::multistream
