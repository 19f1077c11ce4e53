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
  EXPECT_TRUE(has("ld.global.f32 %value4, [%slot1];")) << ptx;
  for (const char* line : {"@%in0 ld.global.f32 %value0, [%at];",
                           "@%in3 ld.global.f32 %value3, [%at];",
                           "div.rn.ftz.f32 %value8, %value0, %value4;",
                           "div.rn.ftz.f32 %value11, %value3, %value4;",
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

// r = x >= b ? x + y + r : (x - y) * (x - y), y and b broadcast.
TEST(FusedKernelsTest, BroadcastOperandsBoolsAndSums) {
  FusedProgram program;
  program.slots = {
      {false, true, true},
      {false, true, false},
      {false, true, false, false, Broadcast{2, 3, 4}},
      {false, true, false, false, Broadcast{1, 5}},
      {false, false, true, /*is_bool=*/true},
      {},
  };
  program.steps = {{Arithmetic::kGreaterEqual, {1, 3}, 4},
                   {Arithmetic::kSquaredDifference, {1, 2}, 5},
                   {Arithmetic::kAdd, {1, 2, 0}, 0},
                   {Arithmetic::kSelect, {4, 0, 5}, 0}};
  const std::string ptx = PtxOf(program);
  for (const char* part : {"  div.u32 %index, %element1, 2;\n"
                           "  div.u32 %row, %index, 12;\n"
                           "  rem.u32 %index, %index, 3;\n"
                           "  mad.lo.u32 %index, %row, 3, %index;\n"
                           "  mad.wide.u32 %at, %index, 4, %slot2;\n"
                           "  @%in1 ld.global.f32 %value9, [%at];\n",
                           "  div.u32 %index, %element1, 1;\n"
                           "  rem.u32 %index, %index, 5;\n"
                           "  mad.wide.u32 %at, %index, 4, %slot3;\n",
                           "  setp.ge.ftz.f32 %p, %value5, %value13;\n"
                           "  selp.u32 %flag17, 1, 0, %p;\n",
                           "  sub.rn.ftz.f32 %part, %value5, %value9;\n"
                           "  mul.rn.ftz.f32 %value21, %part, %part;\n",
                           "  add.rn.ftz.f32 %part, %value5, %value9;\n"
                           "  add.rn.ftz.f32 %value1, %part, %value1;\n",
                           "  setp.ne.u32 %p, %flag17, 0;\n"
                           "  selp.f32 %value1, %value1, %value21, %p;\n",
                           "  mad.wide.u32 %at, %element1, 1, %slot4;\n"
                           "  @%in1 st.global.u8 [%at], %flag17;\n"}) {
    EXPECT_TRUE(absl::StrContains(ptx, part)) << part << "\n" << ptx;
  }
}

}  // namespace
}  // namespace tensorflow::multistream
