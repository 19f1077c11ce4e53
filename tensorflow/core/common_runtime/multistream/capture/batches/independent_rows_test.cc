// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"

namespace tensorflow::multistream {
namespace {

TEST(IndependentRowsTest, ABatchIsTheFirstDimensionOfAllThatHasOne) {
  StepShapes shapes;
  EXPECT_EQ(IndependentRows::Batch(shapes).status().message(),
            "the step takes no rows");
  shapes.received = {{3, 4}, {}};
  shapes.arguments = {{}, {3}};
  shapes.variables = {{DT_FLOAT, {7, 7}}};
  EXPECT_EQ(*IndependentRows::Batch(shapes), 3);
  shapes.arguments.push_back({2, 4});
  EXPECT_EQ(IndependentRows::Batch(shapes).status().message(),
            "the step takes both 3 and 2 rows");
  shapes.received = {};
  shapes.arguments = {{0, 4}};
  EXPECT_EQ(IndependentRows::Batch(shapes).status().message(),
            "the step takes no rows");
}

TEST(IndependentRowsTest, WhatIsSentComesFirst) {
  TestStep step;
  step.Return(step.Add("Neg(rows[2,3])"));
  step.Return(step.Add("const[5]"));
  step.Return(step.Add("rows[]"));
  step.Send(step.Add("Tanh(received[2])"));
  EXPECT_EQ(step.Pad(4), "[2] of [4], [2,3] of [4,3], [5], []");
}

TEST(IndependentRowsTest, OnlyMoreRowsThanTheStepHas) {
  TestStep step;
  step.Return(step.Take({2, 3}));
  const IndependentRows rows(step.graph);
  EXPECT_EQ(rows.Pad(step.shapes, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(rows.Pad(step.shapes, 3).ok());
  step.shapes.received.push_back({2});
  EXPECT_EQ(rows.Pad(step.shapes, 3).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(IndependentRowsTest, ResultsThatNeedNothingElse) {
  ExpectPadded({
      // What no result needs does not matter.
      {"x = rows[2,3]; Softmax(Mean(x, 0)); x", "[2,3] of [4,3]"},
      // An op that is not known is named.
      {"MatrixInverse(rows[2,3,3])",
       "MatrixInverse 'MatrixInverse' is not known to keep rows apart"},
  });
}

TEST(IndependentRowsTest, VariablesAreFixed) {
  TestStep step;
  step.Add("ids = rows[2,6]:int64; w = read(handle[3,5])");
  step.Return(step.Add("MatMul(rows[2,3], w)"));
  step.Return(step.Add("gather(Identity(handle[100,8]), ids)"));
  step.Return(step.Add("gather(table[50,9], ids)"));
  step.Return(step.Add("w"));
  EXPECT_EQ(step.Pad(4),
            "[2,5] of [4,5], [2,6,8] of [4,6,8], [2,6,9] of [4,6,9], [3,5]");
}

TEST(IndependentRowsTest, AVariableWithAsManyRowsAsTheBatch) {
  ExpectPadded({
      // A variable with as many rows as the larger batch does not fit the
      // step's batch.
      {"AddV2(rows[2,3], read(table[4,3]))",
       "has no shape for 2 rows: Dimensions must be equal, but are 2 and 4"},
      {"AddV2(rows[1,3], read(handle[4,3]))", "mixes rows"},
  });
}

TEST(IndependentRowsTest, ManyThreads) {
  TestStep step;
  step.Return(
      step.Add("x = rows[2,6]; n = size(Shape(x), {0}, {1}, {1});"
               "Reshape(x, Pack(n, 2, -1))"));
  const IndependentRows rows(step.graph);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto results = rows.Pad(step.shapes, 3 + i);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ((*results)[0].padded, TensorShape({3 + i, 2, 3}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(IndependentRowsTest, SizesMayDecideShapes) {
  ExpectPadded({
      // Keras reshapes like this: Shape, StridedSlice, Pack, Reshape.
      {"x = rows[2,6]; n = size(Shape(x), {0}, {1}, {1});"
       "Reshape(x, Pack(n, 3, 2))",
       "[2,3,2] of [4,3,2]"},
      {"x = rows[2,6]; Reshape(x, ExpandDims(Prod(Shape(x), 0), 0))",
       "[12] of [24]"},
      {"n = size(Shape(rows[2]), {0}, {1}, {1});"
       "Fill(Pack(Mul(n, 2), 3), const[])",
       "[4,3] of [8,3]"},
  });
}

TEST(IndependentRowsTest, CopiesOfAConstantAreRows) {
  const auto copies = [](const std::string& op_and_constant) {
    return absl::StrCat(
        "x = rows[2,3]; n = size(Shape(x), {0}, {1}, {1});"
        "ConcatV2(x, ",
        op_and_constant, ", Pack(n, 1)), 1)");
  };
  ExpectPadded({
      {copies("Tile(const[1,5]"), "[2,8] of [4,8]"},
      {copies("BroadcastTo(const[]"), "[2,4] of [4,4]"},
      {copies("BroadcastTo(const[1,1]"), "[2,4] of [4,4]"},
      {copies("Tile(const[2,5]"),
       "Tile 'Tile' takes the number of rows for a value"},
  });
}

TEST(IndependentRowsTest, SizesAreNoValues) {
  constexpr char kRefused[] = "takes the number of rows for a value";
  ExpectPadded({
      {"Cast(Size(rows[2,3])) DstT=float", kRefused},
      {"x = rows[2,3]:int32; Mul(x, Size(x))", kRefused},
      // The index of each row.
      {"x = rows[2,3]:int32; n = size(Shape(x), {0}, {1}, {1});"
       "AddV2(x, ExpandDims(Range(0, n, 1), 1))",
       kRefused},
      // A table's first rows, as many as the batch has.
      {"Slice(const[9,3], {0,0}, Shape(rows[2,3]))", kRefused},
      {"Shape(rows[2,3])", "is a result, and depends on the number of rows"},
      {"x = rows[2,3]; n = size(Shape(x), {0}, {1}, {1});"
       "Slice(x, Pack(0, Sub(n, 1)), {-1,-1})",
       kRefused},
  });
}

TEST(IndependentRowsTest, SizesThatAreTheSameForMoreRowsAreFixed) {
  ExpectPadded({
      // x / sqrt(shape(x)[-1])
      {"x = rows[2,3]; n = size(Shape(x), {1}, {2}, {1});"
       "RealDiv(x, Sqrt(Cast(n) DstT=float))",
       "[2,3] of [4,3]"},
      // x + table[range(shape(x)[1])]
      {"x = rows[2,6,3]; n = size(Shape(x), {1}, {2}, {1});"
       "AddV2(x, GatherV2(const[50,3], Range(0, n, 1), 0))",
       "[2,6,3] of [4,6,3]"},
      {"Rank(rows[2,6])", "[]"},
      // A size that comes from a table's shape, not from the batch.
      {"w = read(handle[3,6]); n = size(Shape(w), {0}, {1}, {1});"
       "Mul(MatMul(rows[2,3], w), Cast(n) DstT=float)",
       "[2,6] of [4,6]"},
      {"Reshape(rows[2,6], Cast(read(handle[2])) DstT=int32)",
       "has a shape that is not known before it runs"},
  });
}

// Attention whose shapes are all read from tensors.
TEST(IndependentRowsTest, Attention) {
  TestStep step;
  step.Add(
      "x = rows[3,5,8]; mask = rows[3,5];"
      "batch = size(Shape(x), {0}, {1}, {1});"
      "length = size(Shape(x), {1}, {2}, {1});"
      "flat = Reshape(x, {-1,8}); split = Pack(batch, length, 2, 4)");
  for (const char* heads : {"q", "k", "v"}) {
    step.Add(absl::StrCat(heads,
                          " = Transpose(Reshape(MatMul(flat, "
                          "read(handle[8,8])), split), {0,2,1,3})"));
  }
  step.Return(
      step.Add("scores = BatchMatMulV2(q, k) adj_y=true;"
               "wide = Reshape(Mul(const[], mask), Pack(batch, 1, 1, length));"
               "weights = Softmax(AddV2(scores, wide));"
               "mixed = Transpose(BatchMatMulV2(weights, v), {0,2,1,3});"
               "y = Reshape(mixed, Pack(batch, -1, 8));"
               "SquaredDifference(y, Mean(y, 2) keep_dims=true)"));
  EXPECT_EQ(step.Pad(16), "[3,5,8] of [16,5,8]");
  // Scores between rows.
  step.Return(
      step.Add("between = MatMul(Reshape(y, {-1,40}), "
               "Reshape(x, {-1,40})) transpose_b=true"));
  EXPECT_EQ(step.Pad(16), "MatMul 'between' mixes rows");
}

}  // namespace
}  // namespace tensorflow::multistream
