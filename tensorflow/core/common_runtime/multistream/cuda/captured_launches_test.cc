// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Calls of CUDA by name: of captured_launches.h and of foreign_captures.h.

#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"

#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/cuda/calls_by_name_fixture.h"
#include "tensorflow/core/common_runtime/multistream/cuda/foreign_captures.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {
namespace {

constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;

class CallsByNameTest : public CallsOfLibraryTest {
 protected:
  void SetUp() override {
    const absl::StatusOr<int> launches = NoteFailedLaunchesOf(kLibrary, kCuda);
    ASSERT_TRUE(launches.ok()) << launches.status();
    EXPECT_EQ(*launches, 3);
    const absl::StatusOr<int> calls = IgnoreForeignCapturesIn(kLibrary, kCuda);
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_EQ(*calls, 5);
    Cuda("result") = Cuda("last_error") = 0;
    Cuda("mode") = kGlobal;
    Cuda("mode_of_call") = -1;
    Cuda("exchange_result") = Cuda("exchanges") = 0;
  }
};

class CapturedLaunchesTest : public CallsByNameTest,
                             public ::testing::WithParamInterface<const char*> {
};

TEST_P(CapturedLaunchesTest, ALaunchIsCudas) {
  for (const int result : {0, static_cast<int>(CUDA_ERROR_INVALID_VALUE)}) {
    Cuda("result") = result;
    EXPECT_EQ(Call(GetParam(), 7 + result), result);
    EXPECT_EQ(Cuda("given"), 7 + result);
  }
}

TEST_P(CapturedLaunchesTest, WhileAStepIsCapturedNoneFails) {
  std::optional<CapturedLaunches> launches(std::in_place);
  EXPECT_EQ(Call(GetParam(), 9), 0);
  EXPECT_EQ(Cuda("given"), 9);
  EXPECT_TRUE(launches->failure().ok());
  Cuda("result") = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::thread([this] {  // of other threads they do
    EXPECT_EQ(Call(GetParam()), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  })
      .join();
  EXPECT_TRUE(launches->failure().ok());
  EXPECT_EQ(Call(GetParam()), 0);
  EXPECT_EQ(Cuda("last_error"), 0);
  const absl::Status failure = launches->failure();
  EXPECT_TRUE(absl::IsInternal(failure)) << failure;
  EXPECT_TRUE(absl::StrContains(failure.message(), "901")) << failure;
  // The first failure is kept.
  Cuda("result") = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Call(GetParam()), 0);
  EXPECT_EQ(launches->failure(), failure);
  launches.reset();
  EXPECT_EQ(Call(GetParam()), CUDA_ERROR_INVALID_VALUE);
  launches.emplace();
  EXPECT_TRUE(launches->failure().ok());
}

TEST_P(CapturedLaunchesTest, SkippedLaunchesAreNotMade) {
  Cuda("given") = 0;
  std::optional<SkippedLaunches> skipped(std::in_place);
  EXPECT_EQ(Call(GetParam(), 9), 0);
  EXPECT_EQ(Cuda("given"), 0);
  std::thread([this] { Call(GetParam(), 9); }).join();
  EXPECT_EQ(Cuda("given"), 9);  // another thread's is
  skipped.reset();
  Call(GetParam(), 11);
  EXPECT_EQ(Cuda("given"), 11);
}

INSTANTIATE_TEST_SUITE_P(Launches, CapturedLaunchesTest,
                         ::testing::Values("LaunchOfRuntime", "LaunchOfDriver",
                                           "CopyOfDriver"));

TEST_F(CallsByNameTest, ForeignCapturesDoNotConcernACall) {
  for (const char* function : {"QueryOfDriver", "AllocationOfRuntime"}) {
    for (const int result : {0, 600}) {
      // A mode of the program's stays.
      for (const int mode : {kGlobal, CU_STREAM_CAPTURE_MODE_RELAXED}) {
        Cuda("result") = result;
        Cuda("mode") = mode;
        EXPECT_EQ(Call(function), result);
        EXPECT_EQ(Cuda("given"), 5);
        EXPECT_EQ(Cuda("mode_of_call"), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
        EXPECT_EQ(Cuda("mode"), mode);
      }
    }
  }
}

TEST_F(CallsByNameTest, ACallIsMadeWhereTheModeStaysAsItIs) {
  Cuda("exchange_result") = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(Call("QueryOfDriver"), 0);
  EXPECT_EQ(Cuda("exchanges"), 1);
  EXPECT_EQ(Cuda("mode_of_call"), kGlobal);
  EXPECT_EQ(Cuda("mode"), kGlobal);
}

TEST(TensorFlowsCallsTest, AreByName) {
  constexpr char kFramework[] = "libtensorflow_framework.so";
  for (const auto& replace : {NoteFailedLaunchesOf, IgnoreForeignCapturesIn}) {
    for (const char* library : {kFramework, "libtensorflow_cc.so"}) {
      const absl::StatusOr<int> calls = replace(library, kFramework);
      ASSERT_TRUE(calls.ok()) << calls.status();
      EXPECT_GT(*calls, 0) << library;
    }
    for (const absl::StatusOr<int>& none :
         {replace("libnone.so", kFramework),
          replace(kFramework, "libnone.so")}) {
      EXPECT_TRUE(absl::IsNotFound(none.status())) << none.status();
      EXPECT_TRUE(absl::StrContains(none.status().message(), "libnone.so"));
    }
  }
}

}  // namespace
}  // namespace tensorflow::multistream
