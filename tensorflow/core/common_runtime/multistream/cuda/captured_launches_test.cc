// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"

#include <dlfcn.h>

#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr char kFolder[] = "tensorflow/core/common_runtime/multistream/cuda/";
constexpr char kLibrary[] = "libtest_launches.so";
constexpr char kCuda[] = "libtest_cuda.so";

class CapturedLaunchesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cuda_ = Load(kCuda);
    library_ = Load(kLibrary);
    const absl::StatusOr<int> launches = NoteFailedLaunchesOf(kLibrary, kCuda);
    ASSERT_TRUE(launches.ok()) << launches.status();
    EXPECT_EQ(*launches, 3);
    Cuda("result") = Cuda("last_error") = 0;
  }

  static void* Load(const std::string& name) {
    void* library = dlopen((kFolder + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }
  // A variable of the library that replaces CUDA's.
  int& Cuda(const char* name) { return *static_cast<int*>(dlsym(cuda_, name)); }
  int Call(const char* function, int value = 0) {
    return reinterpret_cast<int (*)(int)>(dlsym(library_, function))(value);
  }

  void* cuda_ = nullptr;
  void* library_ = nullptr;
};

TEST_P(CapturedLaunchesTest, ALaunchIsCudas) {
  EXPECT_EQ(Call(GetParam(), 7), 0);
  EXPECT_EQ(Cuda("given"), 7);
  Cuda("result") = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Call(GetParam(), 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(Cuda("given"), 8);
}

TEST_P(CapturedLaunchesTest, WhileAStepIsCapturedNoneFails) {
  const CapturedLaunches launches;
  EXPECT_EQ(Call(GetParam(), 9), 0);
  EXPECT_EQ(Cuda("given"), 9);
  EXPECT_TRUE(launches.failure().ok());
  Cuda("result") = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  EXPECT_EQ(Call(GetParam()), 0);
  EXPECT_EQ(Cuda("last_error"), 0);
  const absl::Status failure = launches.failure();
  EXPECT_TRUE(absl::IsInternal(failure)) << failure;
  EXPECT_TRUE(absl::StrContains(failure.message(), "901")) << failure;
  // The first failure is kept.
  Cuda("result") = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(Call(GetParam()), 0);
  EXPECT_EQ(launches.failure(), failure);
}

TEST_P(CapturedLaunchesTest, WhenItHasBeenCapturedLaunchesFailAgain) {
  std::optional<CapturedLaunches> launches(std::in_place);
  Cuda("result") = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  EXPECT_EQ(Call(GetParam()), 0);
  launches.reset();
  EXPECT_EQ(Call(GetParam()), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  launches.emplace();
  EXPECT_TRUE(launches->failure().ok());
}

TEST_P(CapturedLaunchesTest, OtherThreadsLaunchesFail) {
  const CapturedLaunches launches;
  Cuda("result") = CUDA_ERROR_INVALID_VALUE;
  std::thread([this] {
    EXPECT_EQ(Call(GetParam()), CUDA_ERROR_INVALID_VALUE);
  }).join();
  EXPECT_TRUE(launches.failure().ok());
}

INSTANTIATE_TEST_SUITE_P(Launches, CapturedLaunchesTest,
                         ::testing::Values("LaunchOfRuntime", "LaunchOfDriver",
                                           "CopyOfDriver"));

TEST(TensorFlowsLaunchesTest, AreCalledByName) {
  constexpr char kFramework[] = "libtensorflow_framework.so";
  for (const char* library : {kFramework, "libtensorflow_cc.so"}) {
    const absl::StatusOr<int> launches =
        NoteFailedLaunchesOf(library, kFramework);
    ASSERT_TRUE(launches.ok()) << launches.status();
    EXPECT_GT(*launches, 0) << library;
  }
}

TEST(TensorFlowsLaunchesTest, ALibraryThatIsNotLoadedIsNamed) {
  for (const absl::StatusOr<int>& launches :
       {NoteFailedLaunchesOf("libnone.so", "libtensorflow_framework.so"),
        NoteFailedLaunchesOf("libtensorflow_framework.so", "libnone.so")}) {
    EXPECT_TRUE(absl::IsNotFound(launches.status())) << launches.status();
    EXPECT_TRUE(absl::StrContains(launches.status().message(), "libnone.so"));
  }
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
