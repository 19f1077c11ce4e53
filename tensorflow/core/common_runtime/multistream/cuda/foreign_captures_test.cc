// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/foreign_captures.h"

#include <dlfcn.h>

#include <string>

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

class ForeignCapturesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cuda_ = Load(kCuda);
    library_ = Load(kLibrary);
    const absl::StatusOr<int> calls = IgnoreForeignCapturesIn(kLibrary, kCuda);
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_EQ(*calls, 2);
    Cuda("mode") = CU_STREAM_CAPTURE_MODE_GLOBAL;
    Cuda("result") = Cuda("exchange_result") = 0;
    Cuda("mode_of_call") = -1;
    Cuda("exchanges") = 0;
  }

  static void* Load(const std::string& name) {
    void* library = dlopen((kFolder + name).c_str(), RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return library;
  }
  // A variable of the library that replaces CUDA's.
  int& Cuda(const char* name) { return *static_cast<int*>(dlsym(cuda_, name)); }
  int Call(const char* function) {
    return reinterpret_cast<int (*)(int)>(dlsym(library_, function))(5);
  }

  void* cuda_ = nullptr;
  void* library_ = nullptr;
};

TEST_F(ForeignCapturesTest, DoNotConcernACall) {
  for (const char* function : {"QueryOfDriver", "AllocationOfRuntime"}) {
    for (const int result : {0, 600}) {
      Cuda("result") = result;
      EXPECT_EQ(Call(function), result);
      EXPECT_EQ(Cuda("given"), 5);
      EXPECT_EQ(Cuda("mode_of_call"), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
      EXPECT_EQ(Cuda("mode"), CU_STREAM_CAPTURE_MODE_GLOBAL);
    }
  }
}

TEST_F(ForeignCapturesTest, AModeOfTheProgramsStays) {
  Cuda("mode") = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT_EQ(Call("QueryOfDriver"), 0);
  EXPECT_EQ(Cuda("mode"), CU_STREAM_CAPTURE_MODE_RELAXED);
}

TEST_F(ForeignCapturesTest, ACallIsMadeWhereTheModeStaysAsItIs) {
  Cuda("exchange_result") = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(Call("QueryOfDriver"), 0);
  EXPECT_EQ(Cuda("exchanges"), 1);
  EXPECT_EQ(Cuda("mode_of_call"), CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(Cuda("mode"), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST(ForeignCapturesInTensorFlowTest, ItsCallsAreByName) {
  constexpr char kFramework[] = "libtensorflow_framework.so";
  for (const char* library : {kFramework, "libtensorflow_cc.so"}) {
    const absl::StatusOr<int> calls =
        IgnoreForeignCapturesIn(library, kFramework);
    ASSERT_TRUE(calls.ok()) << calls.status();
    EXPECT_GT(*calls, 0) << library;
  }
  const absl::StatusOr<int> none =
      IgnoreForeignCapturesIn("libnone.so", kFramework);
  EXPECT_TRUE(absl::IsNotFound(none.status())) << none.status();
  EXPECT_TRUE(absl::StrContains(none.status().message(), "libnone.so"));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
