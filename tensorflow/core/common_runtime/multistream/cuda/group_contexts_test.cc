// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/gpu/scoped_activate_context.h"

namespace {

FakeDriver& driver = *LoadFakeDriver();

}  // namespace

namespace tensorflow::multistream {
namespace {

using stream_executor::gpu::CudaContext;
using stream_executor::gpu::ScopedActivateContext;

// Contexts are never deleted, so each test has its own GPU numbers.
class GroupContextsTest : public ::testing::Test {
 protected:
  GroupContextsTest() : gpu_(10 * ++tests) {
    const intptr_t made = driver.made;
    driver = FakeDriver();
    driver.made = made;
  }

  static absl::StatusOr<CudaContext*> Create(int gpu, int context) {
    ContextOnThread on(context);
    return CallCreateContext(kCreateContext, gpu, /*device=*/gpu);
  }
  static CudaContext* Made(int gpu, int context) {
    auto made = Create(gpu, context);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : nullptr;
  }
  static intptr_t Number(const CudaContext* context) {
    return reinterpret_cast<intptr_t>(context->context());
  }

  const int gpu_;

 private:
  static inline int tests = 0;
};

TEST_F(GroupContextsTest, EachNumberOfAGpuIsAContextMadeOnce) {
  driver.current = 77;
  CudaContext* one = Made(gpu_, 1);
  EXPECT_EQ(driver.flags_of_made, CU_CTX_SCHED_YIELD);
  CudaContext* two = Made(gpu_, 2);
  CudaContext* other = Made(gpu_ + 1, 1);
  EXPECT_EQ(
      (std::set<intptr_t>{Number(one), Number(two), Number(other)}).size(), 3);
  const intptr_t made = driver.made;
  EXPECT_EQ(Made(gpu_, 1), one);
  EXPECT_EQ(Made(gpu_, 2), two);
  EXPECT_EQ(driver.made, made);
  // The thread's current context is unchanged.
  EXPECT_EQ(driver.current, 77);
}

TEST_F(GroupContextsTest, ANestedScopeSwitchesAndTheOuterOneComesBack) {
  CudaContext* one = Made(gpu_, 1);
  CudaContext* two = Made(gpu_, 2);
  ScopedActivateContext outer(one);
  EXPECT_EQ(driver.current, Number(one));
  {
    ScopedActivateContext inner(two);
    EXPECT_EQ(driver.current, Number(two));
    ScopedActivateContext same(two);
    EXPECT_EQ(driver.current, Number(two));
  }
  EXPECT_EQ(driver.current, Number(one));
}

TEST_F(GroupContextsTest, AnErrorIsToldAndNotKept) {
  driver.result = CUDA_ERROR_OUT_OF_MEMORY;
  driver.current = 77;
  const absl::Status status = Create(gpu_, 1).status();
  for (const char* part :
       {"TF_GPU_CONTEXT_COUNT: cuCtxCreate failed", "CUDA_ERROR_OF_THE_TEST"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
  EXPECT_EQ(driver.current, 77);
  driver.result = CUDA_SUCCESS;
  EXPECT_NE(Made(gpu_, 1), nullptr);
}

TEST_F(GroupContextsTest, TheInnermostChoiceIsTheThreads) {
  ContextOnThread outer(1);
  CudaContext* two = Made(gpu_, 2);  // in an inner scope
  auto one = CallCreateContext(kCreateContext, gpu_, gpu_);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_NE(*one, two);
  EXPECT_EQ(*one, Made(gpu_, 1));
}

TEST(NumberOfContextTest, IsTheGpusOwnForItsFirstAndNobodyElsesForOthers) {
  EXPECT_EQ(NumberOfContext(3, 0), 3);
  EXPECT_NE(NumberOfContext(0, 1), 0);
  EXPECT_NE(NumberOfContext(0, 1), NumberOfContext(1, 1));
  EXPECT_NE(NumberOfContext(0, 2), NumberOfContext(0, 1));
  for (int gpu : {0, 15}) {
    for (int context : {0, 1, 63}) {
      EXPECT_EQ(ContextOf(NumberOfContext(gpu, context)), context);
    }
  }
}

TEST(ContextsRunSideBySideTest, IfTheDriverSaysSo) {
  driver.mps = 0;
  EXPECT_EQ(ContextsRunSideBySide(0), false);
  driver.mps = 1;
  EXPECT_EQ(ContextsRunSideBySide(1), true);
  EXPECT_EQ(ContextsRunSideBySide(5), std::nullopt);
}

}  // namespace
}  // namespace tensorflow::multistream
