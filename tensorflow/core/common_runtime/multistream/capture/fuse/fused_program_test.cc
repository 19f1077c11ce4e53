// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensorflow::multistream {
namespace {

constexpr auto kAdd = Arithmetic::kAdd;
constexpr auto kMultiply = Arithmetic::kMultiply;
constexpr auto kSubtract = Arithmetic::kSubtract;

uint64_t At(const std::vector<float>& x) {
  return reinterpret_cast<uint64_t>(x.data());
}

// m += (g - m) * 0.5, where the difference is needed by nothing else.
class FusedProgramTest : public ::testing::Test {
 protected:
  std::vector<ElementwiseOp> Ops() const {
    return {{kSubtract, 3, {{At(g_), false}, {At(m_), false}}, At(difference_)},
            {kMultiply,
             3,
             {{At(difference_), false}, {At(half_), true}},
             At(product_)},
            {kAdd, 3, {{At(m_), false}, {At(product_), false}}, At(m_)}};
  }
  FusedProgram Program() const {
    const std::vector<ElementwiseOp> ops = Ops();
    return ProgramOf({{&ops[0], {10, 11, 12}, false},
                      {&ops[1], {12, 13, 14}, true},
                      {&ops[2], {11, 14, 11}, true}});
  }

  std::vector<float> g_ = {2, 4, 6}, m_ = {1, 1, 1}, half_ = {0.5};
  std::vector<float> difference_ = {-1, -1, -1}, product_ = {-2, -2, -2};
};

TEST_F(FusedProgramTest, StepsAreDoneInOrder) {
  const std::vector<ElementwiseOp> ops = Ops();
  const absl::StatusOr<FusedCall> call = CallOf(Program(), ops);
  ASSERT_TRUE(call.ok()) << call.status();
  RunFused(Program(), *call);
  EXPECT_EQ(m_, std::vector<float>({1.5, 2.5, 3.5}));
  EXPECT_EQ(product_, std::vector<float>({0.5, 1.5, 2.5}));
  EXPECT_EQ(difference_, std::vector<float>({-1, -1, -1}));  // not stored
  EXPECT_EQ(g_, std::vector<float>({2, 4, 6}));
}

TEST_F(FusedProgramTest, OtherMemoryIsTheSameProgramAndOtherStepsAreNot) {
  const FusedProgram program = Program();
  std::vector<ElementwiseOp> ops = Ops();
  EXPECT_EQ(ProgramOf({{&ops[0], {1, 2, 3}, false},
                       {&ops[1], {3, 4, 5}, true},
                       {&ops[2], {2, 5, 2}, true}})
                .Key(),
            program.Key());
  EXPECT_NE(ProgramOf({{&ops[0], {1, 2, 3}, true},
                       {&ops[1], {3, 4, 5}, true},
                       {&ops[2], {2, 5, 2}, true}})
                .Key(),
            program.Key());
  EXPECT_NE(ProgramOf({{&ops[0], {2, 1, 3}, false},
                       {&ops[1], {3, 4, 5}, true},
                       {&ops[2], {2, 5, 2}, true}})
                .Key(),
            program.Key());
  ops[1].arithmetic = kAdd;
  EXPECT_NE(ProgramOf({{&ops[0], {1, 2, 3}, false},
                       {&ops[1], {3, 4, 5}, true},
                       {&ops[2], {2, 5, 2}, true}})
                .Key(),
            program.Key());
}

TEST_F(FusedProgramTest, OtherOpsAreNotCalls) {
  const FusedProgram program = Program();
  const auto is_call = [&](auto change) {
    std::vector<ElementwiseOp> ops = Ops();
    change(&ops);
    return CallOf(program, ops).ok();
  };
  EXPECT_TRUE(is_call([](std::vector<ElementwiseOp>*) {}));
  EXPECT_FALSE(is_call([](auto* ops) { ops->pop_back(); }));
  EXPECT_FALSE(is_call([](auto* ops) { (*ops)[1].arithmetic = kAdd; }));
  EXPECT_FALSE(is_call([](auto* ops) { (*ops)[1].elements = 2; }));
  EXPECT_FALSE(is_call([](auto* ops) { (*ops)[1].operands.pop_back(); }));
  EXPECT_FALSE(
      is_call([](auto* ops) { (*ops)[0].operands[0].is_scalar = true; }));
  EXPECT_FALSE(
      is_call([this](auto* ops) { (*ops)[1].operands[0].address = At(g_); }));
  EXPECT_FALSE(is_call([this](auto* ops) { (*ops)[2].result = At(g_); }));
}

TEST_F(FusedProgramTest, ALaunchHasSoManyCallsAsArgumentsFit) {
  FusedProgram program;
  program.slots.resize(1);
  EXPECT_EQ(MostCallsOf(program), 4088 / 16);
  program.slots.resize(32);
  EXPECT_EQ(MostCallsOf(program), 4088 / 264);
}

TEST_F(FusedProgramTest, Arithmetic) {
  const std::vector<float> x = {9, 2, 0.25}, y = {3, -4, 0.5};
  const auto result = [&](Arithmetic arithmetic) {
    std::vector<float> z(3);
    const bool one = arithmetic >= Arithmetic::kNegate;
    ElementwiseOp op{arithmetic, 3, {{At(x), false}}, At(z)};
    if (!one) op.operands.push_back({At(y), false});
    const FusedProgram program = ProgramOf(
        {{&op, one ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2},
          true}});
    RunFused(program, *CallOf(program, {op}));
    return z;
  };
  EXPECT_EQ(result(kAdd), std::vector<float>({12, -2, 0.75}));
  EXPECT_EQ(result(kSubtract), std::vector<float>({6, 6, -0.25}));
  EXPECT_EQ(result(kMultiply), std::vector<float>({27, -8, 0.125}));
  EXPECT_EQ(result(Arithmetic::kDivide), std::vector<float>({3, -0.5, 0.5}));
  EXPECT_EQ(result(Arithmetic::kNegate), std::vector<float>({-9, -2, -0.25}));
  EXPECT_EQ(result(Arithmetic::kSquare), std::vector<float>({81, 4, 0.0625}));
  EXPECT_EQ(result(Arithmetic::kSquareRoot)[0], 3);
  EXPECT_EQ(result(Arithmetic::kSquareRoot)[2], 0.5);
}

}  // namespace
}  // namespace tensorflow::multistream
