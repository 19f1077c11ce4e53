// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// While few steps run, the thread that launches a captured step polls for its
// end; a host callback is enqueued only if the step takes long.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/watched_thread.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/platform/cpu_info.h"

namespace tensorflow::multistream {
namespace {

constexpr int kLayers = 3;
constexpr int kGroup = 2;

class PolledStepsTest : public EmulatedRuntimeTest {
 protected:
  void SetUp() override {
    if (port::MaxParallelism() < 2) GTEST_SKIP() << "polling takes two cores";
    EmulatedRuntimeTest::SetUp();
    session_ = SessionOf(DenseLayers(kLayers));
    expected_ = Run(0);  // not captured yet
    // Run until there is a recording, and the load statistics have forgotten
    // its first launch, which may take longer, and the steps before.
    for (int i = 0; i < 2 * GpuGroups::kRecentSteps; ++i) Run(0);
  }

  Tensor Run(int seed) { return Layers(session_.get(), Input(seed)); }

  // Runs steps one after another, which must all be replays. Returns how many
  // were polled.
  int64_t PolledOf(int steps) {
    const int64_t replayed = Total(&StreamGroupStats::steps_replayed);
    const int64_t polled = Total(&StreamGroupStats::replays_polled);
    for (int i = 0; i < steps; ++i) Run(i);
    EXPECT_EQ(Total(&StreamGroupStats::steps_replayed) - replayed, steps);
    return Total(&StreamGroupStats::replays_polled) - polled;
  }

  // Whether all steps of one of 100 rounds are polled: on a busy machine an
  // emulated stream's thread may be late.
  bool ArePolled() {
    for (int i = 0; i < 100; ++i) {
      if (PolledOf(20) == 20) return true;
    }
    return false;
  }

  const ScopedStreamGroup pinned_{kGroup};
  std::unique_ptr<Session> session_;
  Tensor expected_;
};

TEST_F(PolledStepsTest, OneAtATimeNeedsNoCallbacks) {
  EXPECT_TRUE(ArePolled());
  // A trace adds one callback of its own for each step.
  constexpr int kSteps = 20;
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(Trace::Get()->Start(100 * kSteps));
    const int64_t polled = PolledOf(kSteps);
    EXPECT_TRUE(Group(kGroup)->Synchronize().ok());
    int64_t callbacks = 0;
    for (const TraceEvent& event : Trace::Get()->Stop().events) {
      callbacks += event.kind == TraceKind::kCallback;
    }
    EXPECT_EQ(callbacks, 2 * kSteps - polled);
    return polled == kSteps;
  }));
}

TEST_F(PolledStepsTest, ManyAtOnceAreNot) {
  GpuGroups* gpu = FindGpuGroups(0);
  for (int i = 0; i < 4; ++i) gpu->StartStepOn(gpu->leader());
  EXPECT_EQ(PolledOf(20), 0);
  for (int i = 0; i < 4; ++i) gpu->EndStep(gpu->leader(), /*ok=*/true);
}

TEST_F(PolledStepsTest, OneThatTakesLongEndsLater) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ArePolled());
    const int64_t before = Total(&StreamGroupStats::steps_replayed);
    Group(kGroup)->Pause();
    {
      WatchedThread step([&] {
        const ScopedStreamGroup pinned(kGroup);
        EXPECT_TRUE(SameBits(Run(0), expected_));
      });
      EXPECT_TRUE(Eventually([before] {
        return Total(&StreamGroupStats::steps_replayed) > before;
      }));
      // The thread polls, and sleeps after it has polled for too long.
      EXPECT_FALSE(step.EndsBeforeItSleeps());
      Group(kGroup)->Resume();
    }
    // The next steps may take as long, so they are not polled.
    EXPECT_EQ(PolledOf(20), 0);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
