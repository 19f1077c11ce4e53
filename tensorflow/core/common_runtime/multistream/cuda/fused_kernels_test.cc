// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What the kernels compute is tested on a GPU: capture/fused_ops_test.py.

#include "tensorflow/core/common_runtime/multistream/cuda/fused_kernels.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"

namespace tensorflow::multistream {
namespace {

// r = sqrt(x / c), x = r * r
FusedProgram Program() {
  FusedProgram program;
  program.slots = {{false, true, true}, {true, true, false}, {}, {}};
  program.steps = {{Arithmetic::kDivide, {0, 1}, 2},
                   {Arithmetic::kSquareRoot, {2}, 3},
                   {Arithmetic::kSquare, {3}, 0}};
  return program;
}

TEST(FusedKernelsTest, APartOfTheKernelForEachSlotStepAndElement) {
  const std::string ptx = PtxOf(Program());
  const auto has = [&ptx](const std::string& line) {
    return absl::StrContains(ptx, line);
  };
  EXPECT_TRUE(has("ld.global.f32 %scalar1, [%slot1];")) << ptx;
  for (const char* line : {"@%in0 ld.global.f32 %value0, [%at];",
                           "@%in3 ld.global.f32 %value3, [%at];",
                           "div.rn.ftz.f32 %value8, %value0, %scalar1;",
                           "div.rn.ftz.f32 %value11, %value3, %scalar1;",
                           "sqrt.approx.ftz.f32 %value12, %value8;",
                           "mul.rn.ftz.f32 %value0, %value12, %value12;",
                           "@%in3 st.global.f32 [%at], %value3;"}) {
    EXPECT_TRUE(has(line)) << line << "\n" << ptx;
  }
  // The places without memory are only values.
  EXPECT_FALSE(has("%slot2, ["));
  EXPECT_FALSE(has("st.global.f32 [%at], %value8;"));
  // 8 bytes of numbers and 4 addresses for each call.
  EXPECT_TRUE(has("mul.wide.u32 %wide, %low, 40;"));
}

}  // namespace
}  // namespace tensorflow::multistream
