// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace multistream {
namespace {

// Elementwise.

TEST(RowRulesTest, Elementwise) {
  EXPECT_EQ(PaddedOp("Tanh", {3}), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("Cast", {3}, nullptr, Attr("DstT", DT_HALF)),
            "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("Mul", {3}, Constant({3})), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("Mul", {3}, Constant({1, 3})), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("Mul", {3}, Constant({})), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("Mul", {3}, Constant({5, 1, 3})), "Mul 'Mul' mixes rows");
  EXPECT_EQ(PaddedOp("Mul", {}, Constant({1})), "[2] of [4]");
  EXPECT_EQ(PaddedOp("BiasAdd", {3}, Constant({3})), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("BiasAdd", {3, 5, 5}, Constant({3}),
                     Attr("data_format", "NCHW")),
            "[2,3,5,5] of [4,3,5,5]");
}

TEST(RowRulesTest, RowsMustBeAlignedWithRows) {
  const auto add = [](const TensorShape& a, const TensorShape& b) {
    return Padded([&](TestStep& step) {
      return step.Op("AddV2", {step.Take(a), step.Take(b)});
    });
  };
  EXPECT_EQ(add({2, 3}, {2, 3}), "[2,3] of [4,3]");
  EXPECT_EQ(add({2, 3}, {2, 1}), "[2,3] of [4,3]");
  EXPECT_EQ(add({2, 3, 5}, {2, 1, 5}), "[2,3,5] of [4,3,5]");
  // Rows of one input are aligned with columns of the other.
  EXPECT_EQ(add({3, 1}, {3}), "AddV2 'AddV2' mixes rows");
  EXPECT_EQ(add({1, 1}, {1}), "AddV2 'AddV2' mixes rows");
  EXPECT_EQ(add({3, 3, 3}, {3, 3}), "AddV2 'AddV2' mixes rows");
}

TEST(RowRulesTest, AConstantWithAsManyRowsAsTheBatch) {
  EXPECT_EQ(PaddedOp("Sub", {3}, Constant({2, 3})),
            "Sub 'Sub' takes a constant with as many rows as the batch");
  EXPECT_EQ(PaddedOp("AddN", {3}, Constant({2, 3})),
            "AddN 'AddN' takes a constant with as many rows as the batch");
  // An op broadcasts a batch of one row to the 4 rows of a constant. The result
  // has 4 rows for the step's one row, though it would be right for 4 rows.
  EXPECT_EQ(
      Padded([](TestStep& step) {
        return step.Op("Maximum", {step.Take({1, 3}), step.Floats({4, 3})});
      }),
      "Maximum 'Maximum' mixes rows");
}

TEST(RowRulesTest, Selects) {
  const auto select = [](const char* op, const TensorShape& condition,
                         const TensorShape& shape) {
    return Padded([&](TestStep& step) {
      return step.Op(op, {step.Take(condition, DT_BOOL), step.Take(shape),
                          step.Take(shape)});
    });
  };
  EXPECT_EQ(select("Select", {2, 3}, {2, 3}), "[2,3] of [4,3]");
  EXPECT_EQ(select("Select", {}, {2, 3}), "[2,3] of [4,3]");
  EXPECT_EQ(select("Select", {2}, {2, 3}), "Select 'Select' mixes rows");
  EXPECT_EQ(select("SelectV2", {2, 1}, {2, 3}), "[2,3] of [4,3]");
  EXPECT_EQ(select("SelectV2", {3}, {3, 3}), "SelectV2 'SelectV2' mixes rows");
}

// Products.

TEST(RowRulesTest, MatMul) {
  EXPECT_EQ(PaddedOp("MatMul", {3}, Constant({3, 5})), "[2,5] of [4,5]");
  EXPECT_EQ(
      PaddedOp("MatMul", {3}, Constant({5, 3}), Attr("transpose_b", true)),
      "[2,5] of [4,5]");
  EXPECT_EQ(
      PaddedOp("MatMul", {3}, Constant({2, 5}), Attr("transpose_a", true)),
      "MatMul 'MatMul' mixes rows");
  const auto both = [](bool transpose_a, bool transpose_b) {
    return Padded([&](TestStep& step) {
      const Value x = step.Take({2, 3});
      return step.Op("MatMul", {x, x}, [&](NodeBuilder* node) {
        node->Attr("transpose_a", transpose_a).Attr("transpose_b", transpose_b);
      });
    });
  };
  EXPECT_EQ(both(false, true), "MatMul 'MatMul' mixes rows");
  EXPECT_EQ(both(true, false), "MatMul 'MatMul' mixes rows");
  const auto fused = [](const std::vector<std::string>& ops) {
    return Padded([&](TestStep& step) {
      return step.Op("_FusedMatMul",
                     {step.Take({2, 3}), step.Floats({3, 5}), step.Floats({5})},
                     Attr("fused_ops", ops));
    });
  };
  EXPECT_EQ(fused({"BiasAdd", "Relu"}), "[2,5] of [4,5]");
  EXPECT_EQ(fused({"Softmax"}), "_FusedMatMul 'FusedMatMul' mixes rows");
}

TEST(RowRulesTest, BatchMatMul) {
  const auto product = [](const TensorShape& a, bool a_is_rows,
                          const TensorShape& b, bool b_is_rows,
                          bool adj_x = false) {
    return Padded([&](TestStep& step) {
      step.Take({2});
      return step.Op("BatchMatMulV2",
                     {a_is_rows ? step.Take(a) : step.Floats(a),
                      b_is_rows ? step.Take(b) : step.Floats(b)},
                     Attr("adj_x", adj_x));
    });
  };
  const std::string refused = "BatchMatMulV2 'BatchMatMulV2' mixes rows";
  EXPECT_EQ(product({2, 7, 3}, true, {2, 3, 5}, true), "[2,7,5] of [4,7,5]");
  EXPECT_EQ(product({2, 6, 7, 3}, true, {2, 1, 3, 5}, true),
            "[2,6,7,5] of [4,6,7,5]");
  EXPECT_EQ(product({2, 7, 3}, true, {3, 5}, false), "[2,7,5] of [4,7,5]");
  EXPECT_EQ(product({2, 7, 3}, true, {1, 3, 5}, false), "[2,7,5] of [4,7,5]");
  EXPECT_EQ(product({7, 3}, false, {2, 3, 5}, true), "[2,7,5] of [4,7,5]");
  EXPECT_EQ(product({2, 3}, true, {3, 5}, false), "[2,5] of [4,5]");
  EXPECT_EQ(product({3, 7}, false, {2, 3, 5}, true, true),
            "[2,7,5] of [4,7,5]");
  EXPECT_EQ(product({2, 3}, true, {2, 5}, false, true), refused);
  EXPECT_EQ(product({2, 2}, true, {2, 2}, true), refused);
  EXPECT_EQ(product({2, 3}, true, {9, 3, 5}, false), refused);
  EXPECT_EQ(product({2, 7, 2}, true, {2, 5}, true), refused);
}

TEST(RowRulesTest, Einsum) {
  const auto einsum = [](const std::string& equation, const TensorShape& a,
                         const TensorShape& b, bool b_is_rows) {
    return Padded([&](TestStep& step) {
      return step.Op("Einsum",
                     {step.Take(a), b_is_rows ? step.Take(b) : step.Floats(b)},
                     Attr("equation", equation));
    });
  };
  const std::string refused = "Einsum 'Einsum' mixes rows";
  EXPECT_EQ(einsum("abc,cde->abde", {2, 7, 3}, {3, 5, 6}, false),
            "[2,7,5,6] of [4,7,5,6]");
  EXPECT_EQ(einsum("abcd,aecd->acbe", {2, 7, 3, 5}, {2, 6, 3, 5}, true),
            "[2,3,7,6] of [4,3,7,6]");
  EXPECT_EQ(einsum("ab,cb->ac", {2, 3}, {2, 3}, true), refused);
  EXPECT_EQ(einsum("ab,ac->bc", {2, 3}, {2, 5}, true), refused);
  EXPECT_EQ(einsum("ab,ac->cb", {2, 3}, {2, 5}, true), refused);
  EXPECT_EQ(einsum("aa,ab->ab", {2, 2}, {2, 5}, true), refused);
  EXPECT_EQ(einsum("...b,bc->...c", {2, 3}, {3, 5}, false), refused);
}

// Along an axis.

TEST(RowRulesTest, Reductions) {
  for (const char* op : {"Sum", "Mean", "Max", "Prod", "ArgMax", "ArgMin"}) {
    const std::string refused =
        std::string(op) + " '" + op + "' is along the batch";
    EXPECT_EQ(PaddedOp(op, {3, 5}, Axis(1)), "[2,5] of [4,5]") << op;
    EXPECT_EQ(PaddedOp(op, {3, 5}, Axis(-1)), "[2,3] of [4,3]") << op;
    EXPECT_EQ(PaddedOp(op, {3, 5}, Axis(0)), refused);
    EXPECT_EQ(PaddedOp(op, {3, 5}, Axis(-3)), refused);
  }
  EXPECT_EQ(PaddedOp("Sum", {3, 5}, Numbers({2, 1})), "[2] of [4]");
  EXPECT_EQ(PaddedOp("Sum", {3, 5}, Numbers({1, 0}), Attr("keep_dims", true)),
            "Sum 'Sum' is along the batch");
  EXPECT_EQ(PaddedOp("L2Loss", {3}), "L2Loss 'L2Loss' mixes rows");
  // The axis is a variable's value.
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value axis = step.Op("Cast", {step.Read(step.Handle({}))},
                                         Attr("DstT", DT_INT32));
              return step.Op("Cumsum", {step.Take({2, 3}), axis});
            }),
            "Cumsum 'Cumsum' has an axis that is not a constant");
}

TEST(RowRulesTest, ScansAndOrders) {
  for (const char* op : {"Cumsum", "Cumprod"}) {
    EXPECT_EQ(PaddedOp(op, {3}, Axis(1)), "[2,3] of [4,3]");
    EXPECT_EQ(PaddedOp(op, {3}, Axis(-2)),
              std::string(op) + " '" + op + "' is along the batch");
  }
  EXPECT_EQ(PaddedOp("ReverseV2", {3}, Numbers({-1})), "[2,3] of [4,3]");
  EXPECT_EQ(PaddedOp("ReverseV2", {3}, Numbers({1, 0})),
            "ReverseV2 'ReverseV2' is along the batch");
  EXPECT_EQ(PaddedOp("TopKV2", {3}, Axis(2)), "[2,2] of [4,2]");
  EXPECT_EQ(PaddedOp("TopKV2", {}, Axis(2)),
            "TopKV2 'TopKV2' is along the batch");
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    EXPECT_EQ(PaddedOp(op, {3}), "[2,3] of [4,3]");
    EXPECT_EQ(PaddedOp(op, {}),
              std::string(op) + " '" + op + "' is along the batch");
  }
  EXPECT_EQ(PaddedOp("MatrixBandPart", {3, 3},
                     [](TestStep& step) {
                       return std::vector<Value>{step.Int(0), step.Int(-1)};
                     }),
            "[2,3,3] of [4,3,3]");
  EXPECT_EQ(PaddedOp("MatrixBandPart", {3},
                     [](TestStep& step) {
                       return std::vector<Value>{step.Int(0), step.Int(-1)};
                     }),
            "MatrixBandPart 'MatrixBandPart' mixes rows");
}

TEST(RowRulesTest, Concat) {
  const auto concat = [](int axis, bool constant) {
    return Padded([&](TestStep& step) {
      return step.Op(
          "ConcatV2",
          {step.Take({2, 3}),
           constant ? step.Floats({2, 3}) : step.Take({2, 3}), step.Int(axis)});
    });
  };
  EXPECT_EQ(concat(1, false), "[2,6] of [4,6]");
  EXPECT_EQ(concat(-1, false), "[2,6] of [4,6]");
  EXPECT_EQ(concat(0, false), "ConcatV2 'ConcatV2' is along the batch");
  EXPECT_EQ(concat(-2, true), "ConcatV2 'ConcatV2' is along the batch");
  EXPECT_EQ(
      concat(1, true),
      "ConcatV2 'ConcatV2' takes a constant with as many rows as the batch");
  const auto pack = [](int axis, bool constant) {
    return Padded([&](TestStep& step) {
      const Value x = step.Take({2, 3});
      return step.Op("Pack", {x, constant ? step.Floats({2, 3}) : x},
                     Attr("axis", axis));
    });
  };
  EXPECT_EQ(pack(1, false), "[2,2,3] of [4,2,3]");
  EXPECT_EQ(pack(-1, false), "[2,3,2] of [4,3,2]");
  EXPECT_EQ(pack(0, false), "Pack 'Pack' is along the batch");
  EXPECT_EQ(pack(-3, false), "Pack 'Pack' is along the batch");
  EXPECT_EQ(pack(1, true),
            "Pack 'Pack' takes a constant with as many rows as the batch");
}

TEST(RowRulesTest, Splits) {
  const auto split = [](int axis) {
    return Padded([&](TestStep& step) {
      return step.Op("Split", {step.Int(axis), step.Take({2, 4})},
                     Attr("num_split", 2));
    });
  };
  EXPECT_EQ(split(1), "[2,2] of [4,2]");
  EXPECT_EQ(split(-2), "Split 'Split' is along the batch");
  const auto split_v = [](int axis) {
    return PaddedOp(
        "SplitV", {4},
        [=](TestStep& step) {
          return Values{step.Ints({1, 3 - 2 * (axis == 0)}), step.Int(axis)};
        },
        Attr("num_split", 2));
  };
  EXPECT_EQ(split_v(1), "[2,1] of [4,1]");
  EXPECT_EQ(split_v(0), "SplitV 'SplitV' is along the batch");
  const auto unpack = [](int axis, int count) {
    return PaddedOp("Unpack", {4}, nullptr, [=](NodeBuilder* node) {
      node->Attr("axis", axis).Attr("num", count);
    });
  };
  EXPECT_EQ(unpack(1, 4), "[2] of [4]");
  EXPECT_EQ(unpack(0, 2), "Unpack 'Unpack' is along the batch");
}

TEST(RowRulesTest, OneHot) {
  const auto one_hot = [](int axis) {
    return Padded([&](TestStep& step) {
      const Value on = step.Floats({});
      return step.Op("OneHot", {step.Take({2}, DT_INT64), step.Int(5), on, on},
                     Attr("axis", axis));
    });
  };
  EXPECT_EQ(one_hot(-1), "[2,5] of [4,5]");
  EXPECT_EQ(one_hot(1), "[2,5] of [4,5]");
  EXPECT_EQ(one_hot(0), "OneHot 'OneHot' is along the batch");
}

// Lookups.

TEST(RowRulesTest, Gather) {
  const auto gather = [](bool params_are_rows, bool ids_are_rows, int axis,
                         int batch_dims) {
    return Padded([&](TestStep& step) {
      const TensorShape params = {2, 3, 5};
      const TensorShape ids = {2, 3};
      const Value all = step.Const(Tensor(DT_INT64, ids));
      step.Take({2});
      return step.Op(
          "GatherV2",
          {params_are_rows ? step.Take(params) : step.Floats(params),
           ids_are_rows ? step.Take(ids, DT_INT64) : all, step.Int(axis)},
          Attr("batch_dims", batch_dims));
    });
  };
  const std::string mixes = "GatherV2 'GatherV2' mixes rows";
  const std::string along = "GatherV2 'GatherV2' is along the batch";
  EXPECT_EQ(gather(false, true, 0, 0), "[2,3,3,5] of [4,3,3,5]");
  EXPECT_EQ(gather(false, true, -3, 0), "[2,3,3,5] of [4,3,3,5]");
  EXPECT_EQ(gather(false, true, 1, 0), mixes);
  EXPECT_EQ(gather(true, false, 1, 0), "[2,2,3,5] of [4,2,3,5]");
  EXPECT_EQ(gather(true, false, -1, 0), "[2,3,2,3] of [4,3,2,3]");
  EXPECT_EQ(gather(true, false, 0, 0), along);
  EXPECT_EQ(gather(true, true, 1, 1), "[2,3,5] of [4,3,5]");
  EXPECT_EQ(gather(true, true, 2, -1), "[2,3,3] of [4,3,3]");
  EXPECT_EQ(gather(true, true, 0, 0), mixes);
  EXPECT_EQ(gather(true, true, 1, 0), mixes);
  EXPECT_EQ(
      gather(false, true, 1, 1),
      "GatherV2 'GatherV2' takes a constant with as many rows as the batch");
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op("Gather",
                             {step.Floats({9, 5}), step.Take({2}, DT_INT64)});
            }),
            "[2,5] of [4,5]");
}

TEST(RowRulesTest, GatherNd) {
  const auto gather = [](bool params_are_rows, const TensorShape& ids) {
    return Padded([&](TestStep& step) {
      step.Take({2});
      return step.Op("GatherNd", {params_are_rows ? step.Take({2, 3, 5})
                                                  : step.Floats({2, 3, 5}),
                                  step.Take(ids, DT_INT64)});
    });
  };
  EXPECT_EQ(gather(false, {2, 7, 2}), "[2,7,5] of [4,7,5]");
  EXPECT_EQ(gather(false, {2, 3}), "[2] of [4]");
  EXPECT_EQ(gather(false, {2}), "GatherNd 'GatherNd' mixes rows");
  EXPECT_EQ(gather(true, {2, 7, 2}), "GatherNd 'GatherNd' mixes rows");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
