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

// Whoever launches a captured step, while few run, polls for its end: no host
// callback is enqueued, unless it takes long.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_runtime_fixture.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_load.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/platform/cpu_info.h"

namespace tensorflow {
namespace multistream {
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
    // Until there is a recording whose first launch, which may take longer, is
    // forgotten, as is what ran before.
    for (int i = 0; i < 2 * GroupLoad::kRecentSteps; ++i) Run(0);
  }

  Tensor Run(int seed) {
    std::vector<Tensor> outputs;
    const absl::Status status =
        session_->Run({{"x", Input(seed)}}, {"y:0"}, {}, &outputs);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? outputs[0] : Tensor();
  }

  // Of so many steps, one after another, all of them replays. A trace has one
  // of its own for each.
  int64_t CallbacksOf(int steps) {
    const int64_t before = Total(&StreamGroupStats::steps_replayed);
    EXPECT_TRUE(Trace::Get()->Start(100 * steps));
    for (int i = 0; i < steps; ++i) Run(i);
    for (int i = 0; i < kGroups; ++i) {
      EXPECT_TRUE(Group(i)->Synchronize().ok());
    }
    int64_t callbacks = -steps;
    for (const TraceEvent& event : Trace::Get()->Stop().events) {
      callbacks += event.kind == TraceKind::kCallback;
    }
    EXPECT_EQ(Total(&StreamGroupStats::steps_replayed) - before, steps);
    return callbacks;
  }

  // Whether steps need no callbacks, once. On a busy machine the thread of an
  // emulated stream may be late.
  bool ArePolled() {
    for (int i = 0; i < 100; ++i) {
      if (CallbacksOf(20) == 0) return true;
    }
    return false;
  }

  const ScopedStreamGroup pinned_{kGroup};
  std::unique_ptr<Session> session_;
  Tensor expected_;
};

TEST_F(PolledStepsTest, OneAtATimeNeedsNoCallbacks) {
  EXPECT_TRUE(ArePolled());
}

TEST_F(PolledStepsTest, ManyAtOnceHaveCallbacks) {
  GpuGroups* gpu = FindGpuGroups(0);
  for (int i = 0; i < 4; ++i) gpu->StartStepOn(gpu->leader());
  EXPECT_EQ(CallbacksOf(20), 20);
  for (int i = 0; i < 4; ++i) gpu->EndStep(gpu->leader(), /*ok=*/true);
}

TEST_F(PolledStepsTest, OneThatTakesLongEndsLater) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(ArePolled());
    const int64_t before = Total(&StreamGroupStats::steps_replayed);
    Group(kGroup)->Pause();
    std::atomic<bool> ended{false};
    std::thread step([&] {
      const ScopedStreamGroup pinned(kGroup);
      EXPECT_TRUE(SameBits(Run(0), expected_));
      ended = true;
    });
    EXPECT_TRUE(Eventually([before] {
      return Total(&StreamGroupStats::steps_replayed) > before;
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(ended);
    Group(kGroup)->Resume();
    step.join();
    // Those after it may take as long.
    EXPECT_EQ(CallbacksOf(20), 20);
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
