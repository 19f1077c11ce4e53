// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace multistream {
namespace {

// Inputs and outputs of a step.

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
  const Value x = step.Take({2, 3});
  step.Return(step.Op("Neg", {x}));
  step.Return(step.Floats({5}));
  step.Return(step.Take({}));
  step.Send(step.Op("Tanh", {step.Receive({2})}));
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

TEST(IndependentRowsTest, WhatNoResultNeedsDoesNotMatter) {
  TestStep step;
  const Value x = step.Take({2, 3});
  step.Op("Softmax", {step.Op("Mean", {x, step.Int(0)})});
  step.Return(x);
  EXPECT_EQ(step.Pad(4), "[2,3] of [4,3]");
}

TEST(IndependentRowsTest, AnOpThatIsNotKnownIsNamed) {
  const auto results = PaddedOp("MatrixInverse", {3, 3});
  EXPECT_EQ(results,
            "MatrixInverse 'MatrixInverse' is not known to keep rows apart");
}

TEST(IndependentRowsTest, VariablesAreFixed) {
  TestStep step;
  const Value x = step.Take({2, 3});
  const Value ids = step.Take({2, 6}, DT_INT64);
  const auto gather = [&](Value handle) {
    return step.Op("ResourceGather", {handle, ids}, Attr("dtype", DT_FLOAT));
  };
  const Value handle = step.Handle({3, 5});
  step.Return(step.Op("MatMul", {x, step.Read(handle)}));
  step.Return(gather(step.Op("Identity", {step.Handle({100, 8})})));
  step.Return(gather(step.Variable({50, 9})));
  step.Return(step.Read(handle));
  EXPECT_EQ(step.Pad(4),
            "[2,5] of [4,5], [2,6,8] of [4,6,8], [2,6,9] of [4,6,9], [3,5]");
}

TEST(IndependentRowsTest, AVariableWithAsManyRowsAsTheBatch) {
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op("AddV2", {step.Take({4, 3}),
                                       step.Read(step.Variable({4, 3}))});
            }),
            "not the shapes of the graph, or not more than 4 rows: 4");
  // A variable with as many rows as the larger batch does not fit the step's
  // batch.
  EXPECT_TRUE(absl::StartsWith(
      Padded([](TestStep& step) {
        return step.Op("AddV2",
                       {step.Take({2, 3}), step.Read(step.Variable({4, 3}))});
      }),
      "AddV2 'AddV2' has no shape for 2 rows: "));
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op(
                  "AddV2", {step.Take({1, 3}), step.Read(step.Handle({4, 3}))});
            }),
            "AddV2 'AddV2' mixes rows");
}

TEST(IndependentRowsTest, ManyThreads) {
  TestStep step;
  const Value x = step.Take({2, 6});
  const Value size = step.Size(step.Op("Shape", {x}), 0);
  step.Return(step.Op("Reshape",
                      {x, step.Op("Pack", {size, step.Int(2), step.Int(-1)})}));
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

// The number of rows, as a tensor.

TEST(IndependentRowsTest, SizesMayDecideShapes) {
  // Keras reshapes like this: Shape, StridedSlice, Pack, Reshape.
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 6});
              const Value size = step.Size(step.Op("Shape", {x}), 0);
              return step.Op(
                  "Reshape",
                  {x, step.Op("Pack", {size, step.Int(3), step.Int(2)})});
            }),
            "[2,3,2] of [4,3,2]");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 6});
              const Value shape = step.Op("Shape", {x});
              const Value size = step.Op("Prod", {shape, step.Int(0)});
              const Value one = step.Op("ExpandDims", {size, step.Int(0)});
              return step.Op("Reshape", {x, one});
            }),
            "[12] of [24]");
  EXPECT_EQ(
      Padded([](TestStep& step) {
        const Value size = step.Size(step.Op("Shape", {step.Take({2})}), 0);
        const Value twice = step.Op("Mul", {size, step.Int(2)});
        return step.Op(
            "Fill", {step.Op("Pack", {twice, step.Int(3)}), step.Floats({})});
      }),
      "[4,3] of [8,3]");
}

TEST(IndependentRowsTest, CopiesOfAConstantAreRows) {
  const auto copies = [](const char* op, const TensorShape& shape) {
    return Padded([&](TestStep& step) {
      const Value x = step.Take({2, 3});
      const Value size = step.Size(step.Op("Shape", {x}), 0);
      const Value many = step.Op("Pack", {size, step.Int(1)});
      return step.Op("ConcatV2",
                     {x, step.Op(op, {step.Floats(shape), many}), step.Int(1)});
    });
  };
  EXPECT_EQ(copies("Tile", {1, 5}), "[2,8] of [4,8]");
  EXPECT_EQ(copies("BroadcastTo", {}), "[2,4] of [4,4]");
  EXPECT_EQ(copies("BroadcastTo", {1, 1}), "[2,4] of [4,4]");
  EXPECT_EQ(copies("Tile", {2, 5}),
            "Tile 'Tile' takes the number of rows for a value");
}

TEST(IndependentRowsTest, SizesAreNoValues) {
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3});
              const Value size = step.Size(step.Op("Shape", {x}), 0);
              return step.Op("RealDiv", {x, step.Op("Cast", {size},
                                                    Attr("DstT", DT_FLOAT))});
            }),
            "Cast 'Cast' takes the number of rows for a value");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3}, DT_INT32);
              return step.Op("Mul", {x, step.Op("Size", {x})});
            }),
            "Mul 'Mul' takes the number of rows for a value");
  // The index of each row.
  EXPECT_EQ(
      Padded([](TestStep& step) {
        const Value x = step.Take({2, 3}, DT_INT32);
        const Value size = step.Size(step.Op("Shape", {x}), 0);
        const Value all = step.Op("Range", {step.Int(0), size, step.Int(1)});
        return step.Op("AddV2", {x, step.Op("ExpandDims", {all, step.Int(1)})});
      }),
      "AddV2 'AddV2' takes the number of rows for a value");
  // A table's first rows, as many as the batch has.
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3});
              const Value shape = step.Op("Shape", {x});
              const Value first = step.Op(
                  "Slice", {step.Floats({9, 3}), step.Ints({0, 0}), shape});
              return step.Op("AddV2", {x, first});
            }),
            "Slice 'Slice' takes the number of rows for a value");
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op("Shape", {step.Take({2, 3})});
            }),
            "Shape 'Shape' is a result, and depends on the number of rows");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3});
              const Value last = step.Op(
                  "Sub", {step.Size(step.Op("Shape", {x}), 0), step.Int(1)});
              const Value begin = step.Op("Pack", {step.Int(0), last});
              return step.Op("Slice", {x, begin, step.Ints({-1, -1})});
            }),
            "Slice 'Slice' takes the number of rows for a value");
}

TEST(IndependentRowsTest, SizesThatAreTheSameForMoreRowsAreFixed) {
  // x / sqrt(shape(x)[-1])
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3});
              const Value size = step.Size(step.Op("Shape", {x}), -1 + 2);
              const Value width =
                  step.Op("Cast", {size}, Attr("DstT", DT_FLOAT));
              return step.Op("RealDiv", {x, step.Op("Sqrt", {width})});
            }),
            "[2,3] of [4,3]");
  // x + table[range(shape(x)[1])]
  EXPECT_EQ(
      Padded([](TestStep& step) {
        const Value x = step.Take({2, 6, 3});
        const Value size = step.Size(step.Op("Shape", {x}), 1);
        const Value all = step.Op("Range", {step.Int(0), size, step.Int(1)});
        const Value rows =
            step.Op("GatherV2", {step.Floats({50, 3}), all, step.Int(0)});
        return step.Op("AddV2", {x, rows});
      }),
      "[2,6,3] of [4,6,3]");
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op("Rank", {step.Take({2, 6})});
            }),
            "[]");
}

// A size that comes from a table's shape, not from the batch.
TEST(IndependentRowsTest, ShapesOfConstantsAreFixed) {
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value w = step.Read(step.Handle({3, 6}));
              const Value y = step.Op("MatMul", {step.Take({2, 3}), w});
              const Value width =
                  step.Op("Cast", {step.Size(step.Op("Shape", {w}), 0)},
                          Attr("DstT", DT_FLOAT));
              return step.Op("Mul", {y, width});
            }),
            "[2,6] of [4,6]");
}

TEST(IndependentRowsTest, AShapeThatIsNotKnown) {
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value shape = step.Op("Cast", {step.Read(step.Handle({2}))},
                                          Attr("DstT", DT_INT32));
              return step.Op("Reshape", {step.Take({2, 6}), shape});
            }),
            "Reshape 'Reshape' has a shape that is not known before it runs");
}

// Models.

TEST(IndependentRowsTest, EmbeddingsAndLayers) {
  TestStep step;
  const Value ids = step.Receive({2, 10}, DT_INT64);
  const Value dense = step.Receive({2, 13});
  const Value looked_up =
      step.Op("ResourceGather", {step.Variable({1000, 8}), ids},
              Attr("dtype", DT_FLOAT));
  const Value pooled = step.Op("Mean", {looked_up, step.Int(1)});
  Value x = step.Op("ConcatV2", {pooled, dense, step.Int(-1)});
  for (const int64_t width : {64, 32, 1}) {
    const int64_t from = x.node->type_string() == "ConcatV2" ? 21 : 2 * width;
    const int64_t inputs = width == 1 ? 32 : from;
    x = step.Op("MatMul", {x, step.Read(step.Variable({inputs, width}))});
    x = step.Op("BiasAdd", {x, step.Read(step.Variable({width}))});
    x = step.Op("Relu", {x});
  }
  step.Send(step.Op("Squeeze", {x}, Attr("squeeze_dims", std::vector<int>{1})));
  step.Send(step.Op("Sigmoid", {x}));
  EXPECT_EQ(step.Pad(8), "[2] of [8], [2,1] of [8,1]");
}

// Attention whose shapes are all read from tensors.
TEST(IndependentRowsTest, Attention) {
  TestStep step;
  const Value x = step.Take({3, 5, 8});
  const Value mask = step.Take({3, 5});
  const Value batch = step.Size(step.Op("Shape", {x}), 0);
  const Value length = step.Size(step.Op("Shape", {x}), 1);
  const auto heads = [&] {
    const Value flat = step.Op("Reshape", {x, step.Ints({-1, 8})});
    const Value made =
        step.Op("MatMul", {flat, step.Read(step.Handle({8, 8}))});
    const Value split = step.Op(
        "Reshape",
        {made, step.Op("Pack", {batch, length, step.Int(2), step.Int(4)})});
    return step.Op("Transpose", {split, step.Ints({0, 2, 1, 3})});
  };
  const Value q = heads(), k = heads(), v = heads();
  const Value scores = step.Op("BatchMatMulV2", {q, k}, Attr("adj_y", true));
  const Value added = step.Op("Mul", {step.Floats({}), mask});
  const Value wide = step.Op(
      "Reshape",
      {added, step.Op("Pack", {batch, step.Int(1), step.Int(1), length})});
  const Value weights = step.Op("Softmax", {step.Op("AddV2", {scores, wide})});
  const Value mixed = step.Op(
      "Transpose",
      {step.Op("BatchMatMulV2", {weights, v}), step.Ints({0, 2, 1, 3})});
  const Value y = step.Op(
      "Reshape", {mixed, step.Op("Pack", {batch, step.Int(-1), step.Int(8)})});
  const Value mean = step.Op("Mean", {y, step.Int(2)}, Attr("keep_dims", true));
  step.Return(step.Op("SquaredDifference", {y, mean}));
  EXPECT_EQ(step.Pad(16), "[3,5,8] of [16,5,8]");
  // Scores between rows.
  step.Return(step.Op("MatMul",
                      {step.Op("Reshape", {y, step.Ints({-1, 40})}),
                       step.Op("Reshape", {x, step.Ints({-1, 40})})},
                      Attr("transpose_b", true)));
  EXPECT_EQ(step.Pad(16), "MatMul 'MatMul_3' mixes rows");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
