// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
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
    return {
        {kSubtract, 3, {{At(g_)}, {At(m_)}}, At(difference_)},
        {kMultiply, 3, {{At(difference_)}, {At(half_), true}}, At(product_)},
        {kAdd, 3, {{At(m_)}, {At(product_)}}, At(m_)}};
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

// Element by element, as loops over the dimensions find them.
TEST_F(FusedProgramTest, ABroadcastOperandIsReadWhereItsShapeSays) {
  constexpr uint32_t kAny = Broadcast::kAny;
  constexpr int kA = 3, kB = 4, kC = 5, kD = 2;
  uint64_t i = 0;
  for (uint64_t a = 0; a < kA; ++a) {
    for (uint64_t b = 0; b < kB; ++b) {
      for (uint64_t c = 0; c < kC; ++c) {
        for (uint64_t d = 0; d < kD; ++d, ++i) {
          EXPECT_EQ((Broadcast{kD, kC, kB}.Index(i)), a * kC + c);
          EXPECT_EQ((Broadcast{1, kC * kD, kB}.Index(i)),
                    (a * kC + c) * kD + d);
          EXPECT_EQ((Broadcast{kD, kC, kAny}.Index(i)), c);
          EXPECT_EQ((Broadcast{1, kD, kAny}.Index(i)), d);
          EXPECT_EQ((Broadcast{kC * kD, kAny, kAny}.Index(i)), a * kB + b);
        }
      }
    }
  }
}

TEST_F(FusedProgramTest, OperandsThatAreBroadcastOtherwiseAreAnotherProgram) {
  const auto program = [this](std::optional<Broadcast> broadcast) {
    const ElementwiseOp op{
        kAdd, 3, {{At(g_)}, {At(m_), false, broadcast}}, At(product_)};
    return ProgramOf({{&op, {0, 1, 2}, true}});
  };
  const FusedProgram rows = program(Broadcast{2, Broadcast::kAny});
  EXPECT_NE(rows.Key(), program(Broadcast{3, Broadcast::kAny}).Key());
  EXPECT_NE(rows.Key(), program(Broadcast{1, 2}).Key());
  EXPECT_NE(rows.Key(), program(std::nullopt).Key());
  ElementwiseOp op{
      kAdd, 3, {{At(g_)}, {At(m_), false, Broadcast{2}}}, At(product_)};
  const absl::StatusOr<FusedCall> call = CallOf(rows, {op});
  ASSERT_TRUE(call.ok()) << call.status();
  m_ = {1, 10, 100};
  RunFused(rows, *call);
  EXPECT_EQ(product_, std::vector<float>({3, 5, 16}));
  op.operands[1].broadcast->inner = 3;
  EXPECT_FALSE(CallOf(rows, {op}).ok());
}

// r = x >= 2 ? x : y + y + x
TEST_F(FusedProgramTest, BoolsChoose) {
  std::vector<float> result(3);
  bool is_more[3] = {};
  const auto bools = reinterpret_cast<uint64_t>(is_more);
  const std::vector<ElementwiseOp> ops = {
      {Arithmetic::kGreaterEqual, 3, {{At(g_)}, {At(half_), true}}, bools},
      {kAdd, 3, {{At(m_)}, {At(m_)}, {At(g_)}}, At(product_)},
      {Arithmetic::kSelect, 3, {{bools}, {At(g_)}, {At(product_)}}, At(result)},
  };
  half_ = {4};
  const FusedProgram program = ProgramOf({{&ops[0], {0, 1, 2}, true},
                                          {&ops[1], {3, 3, 0, 4}, false},
                                          {&ops[2], {2, 0, 4, 5}, true}});
  RunFused(program, *CallOf(program, ops));
  EXPECT_EQ(result, std::vector<float>({4, 4, 6}));
  EXPECT_FALSE(is_more[0]);
  EXPECT_TRUE(is_more[1]);
  // Also where another kernel has made the bools.
  const FusedProgram select = ProgramOf({{&ops[2], {2, 0, 4, 5}, true}});
  product_ = {7, 8, 9};
  RunFused(select, *CallOf(select, {ops[2]}));
  EXPECT_EQ(result, std::vector<float>({7, 4, 6}));
}

TEST_F(FusedProgramTest, Arithmetic) {
  const std::vector<float> x = {9, 2, 0.25}, y = {3, -4, 0.5};
  const auto result = [&](Arithmetic arithmetic) {
    std::vector<float> z(3);
    const bool one = arithmetic == Arithmetic::kNegate ||
                     arithmetic == Arithmetic::kSquare ||
                     arithmetic == Arithmetic::kSquareRoot ||
                     arithmetic == Arithmetic::kCopy;
    ElementwiseOp op{arithmetic, 3, {{At(x)}}, At(z)};
    if (!one) op.operands.push_back({At(y)});
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
  EXPECT_EQ(result(Arithmetic::kSquaredDifference),
            std::vector<float>({36, 36, 0.0625}));
  EXPECT_EQ(result(Arithmetic::kCopy), x);
}

}  // namespace
}  // namespace tensorflow::multistream
