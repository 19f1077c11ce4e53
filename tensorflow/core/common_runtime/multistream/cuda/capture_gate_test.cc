// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace tensorflow::multistream {
namespace {

using Side = CaptureGate::Side;
constexpr Side kCaptures = CaptureGate::kCaptures;
constexpr Side kWaits = CaptureGate::kWaits;
constexpr absl::Duration kForever = absl::InfiniteDuration();
constexpr absl::Duration kNotAtAll = absl::ZeroDuration();

class CaptureGateTest : public ::testing::TestWithParam<Side> {
 protected:
  static Side ThisSide() { return GetParam(); }
  static Side OtherSide() { return ThisSide() == kWaits ? kCaptures : kWaits; }

  CaptureGate gate_{/*longest_still=*/kForever};
};

TEST_P(CaptureGateTest, OneSideIsInsideTogether) {
  EXPECT_TRUE(gate_.Enter(ThisSide(), kNotAtAll));
  EXPECT_TRUE(gate_.Enter(ThisSide(), kNotAtAll));
  gate_.Leave(ThisSide());
  EXPECT_FALSE(gate_.Enter(OtherSide(), kNotAtAll));
  gate_.Leave(ThisSide());
  EXPECT_TRUE(gate_.Enter(OtherSide(), kNotAtAll));
}

TEST_P(CaptureGateTest, TheOtherSideWaitsAndThenEntersTogether) {
  ASSERT_TRUE(gate_.Enter(ThisSide(), kNotAtAll));
  absl::BlockingCounter inside(2);
  absl::Notification leave;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      EXPECT_TRUE(gate_.Enter(OtherSide(), kForever));
      inside.DecrementCount();
      leave.WaitForNotification();
      gate_.Leave(OtherSide());
    });
  }
  while (gate_.waiting(OtherSide()) != 2) std::this_thread::yield();
  gate_.Leave(ThisSide());
  inside.Wait();
  leave.Notify();
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Sides, CaptureGateTest,
                         ::testing::Values(kCaptures, kWaits));

TEST_F(CaptureGateTest, AWaitIsInside) {
  int waits = 0;
  gate_.Wait([&] {
    ++waits;
    EXPECT_FALSE(gate_.Enter(kCaptures, kNotAtAll));
    return false;  // failed because of a capture by other code
  });
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(gate_.passed(), 0);
  EXPECT_TRUE(gate_.Enter(kCaptures, kNotAtAll));
}

TEST_F(CaptureGateTest, AWaitThatFailsWithoutBeingInsideIsMadeOnceMore) {
  std::optional<GatedCapture> capture(&gate_);
  int waits = 0;
  const auto fails = [&] { return ++waits < 0; };
  gate_.Wait(fails, kNotAtAll);
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(gate_.passed(), 2);
  // If the first wait ends the capture, the second one enters the gate.
  waits = 0;
  gate_.Wait(
      [&] {
        capture.reset();
        return ++waits > 1;
      },
      kNotAtAll);
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(gate_.passed(), 3);
}

TEST_F(CaptureGateTest, ACaptureThatGetsOnKeepsWaitsOut) {
  class AlwaysGetsOn : public CaptureGate {
   public:
    using CaptureGate::CaptureGate;
    int64_t progress() const override { return ++looks; }
    mutable std::atomic<int64_t> looks{0};
  } gate(/*longest_still=*/absl::Milliseconds(1));
  std::optional<GatedCapture> capture(&gate);
  bool entered = false;
  std::thread waits([&] { entered = gate.Enter(kWaits, kForever); });
  while (gate.looks < 6) std::this_thread::yield();
  capture.reset();
  waits.join();
  EXPECT_TRUE(entered);
}

// A wait without progress is normal: the GPU may be busy for long.
TEST_F(CaptureGateTest, ACaptureWaitsForAWaitThatStandsStill) {
  CaptureGate gate(/*longest_still=*/absl::ZeroDuration());
  ASSERT_TRUE(gate.Enter(kWaits, kNotAtAll));
  bool entered = false;
  std::thread captures([&] { entered = gate.Enter(kCaptures, kForever); });
  while (gate.waiting(kCaptures) == 0) std::this_thread::yield();
  // Gives the thread time to give up, which would be the fault.
  for (int i = 0; i < 10000 && gate.waiting(kCaptures) == 1; ++i) {
    std::this_thread::yield();
  }
  gate.Leave(kWaits);
  captures.join();
  EXPECT_TRUE(entered);
}

TEST_F(CaptureGateTest, ACaptureIsInsideForItsLife) {
  std::optional<GatedCapture> capture;
  EXPECT_FALSE(GatedCapture::IsOnThisThread());
  capture.emplace(&gate_);
  EXPECT_TRUE(capture->status().ok());
  EXPECT_TRUE(GatedCapture::IsOnThisThread());
  capture->NoteProgress();
  EXPECT_EQ(gate_.progress(), 1);
  std::thread([] { EXPECT_FALSE(GatedCapture::IsOnThisThread()); }).join();
  EXPECT_FALSE(gate_.Enter(kWaits, kNotAtAll));
  capture.reset();
  EXPECT_FALSE(GatedCapture::IsOnThisThread());
  EXPECT_TRUE(gate_.Enter(kWaits, kNotAtAll));
}

// The step then runs without being captured, and is recorded another time.
TEST_F(CaptureGateTest, ThereIsNoCaptureWhileAnotherThreadWaitsForLong) {
  gate_.Wait([&] {
    const GatedCapture capture(&gate_, kNotAtAll);
    EXPECT_TRUE(absl::IsDeadlineExceeded(capture.status())) << capture.status();
    EXPECT_FALSE(GatedCapture::IsOnThisThread());
    return true;
  });
  EXPECT_TRUE(gate_.Enter(kCaptures, kNotAtAll));
}

// If an op ended the capture, a retry fails again; if another thread did, a
// retry can succeed.
TEST_F(CaptureGateTest, TellsWhetherAnotherThreadMayHaveEndedACapture) {
  const auto of_others = [this](auto wait) {
    const GatedCapture capture(&gate_);
    wait();
    const absl::Status why = capture.WhyEnded();
    EXPECT_TRUE(absl::IsInternal(why) || absl::IsFailedPrecondition(why));
    return absl::IsInternal(why);
  };
  const auto none = [] {};
  const auto passes = [this] { gate_.PassBy([] { return true; }); };
  EXPECT_TRUE(of_others(none)) << "the driver's waits do not come to the gate";
  gate_.set_guards(true);
  EXPECT_FALSE(of_others(none));
  EXPECT_TRUE(of_others(passes));
  EXPECT_FALSE(of_others(none)) << "one that has passed by before";
  gate_.PassBy([&] {
    EXPECT_TRUE(of_others(none)) << "one that began before";
    return true;
  });
  EXPECT_FALSE(of_others(none));
}

}  // namespace
}  // namespace tensorflow::multistream
