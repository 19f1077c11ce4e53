// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"

namespace tensorflow::multistream {
namespace {

constexpr char kMixes[] = "mixes rows";
constexpr char kAlong[] = "is along the batch";
constexpr char kConstant[] = "takes a constant with as many rows as the batch";
constexpr char kNotRows[] = "gives what has no rows, or not those of the batch";

TEST(RowRulesTest, Elementwise) {
  ExpectPadded({
      {"Tanh(rows[2,3])", "[2,3] of [4,3]"},
      {"Cast(rows[2,3]) DstT=half", "[2,3] of [4,3]"},
      {"Mul(rows[2,3], const[3])", "[2,3] of [4,3]"},
      {"Mul(rows[2,3], const[1,3])", "[2,3] of [4,3]"},
      {"Mul(rows[2,3], const[])", "[2,3] of [4,3]"},
      {"Mul(rows[2,3], const[5,1,3])", kMixes},
      {"Mul(rows[2], const[1])", "[2] of [4]"},
      {"BiasAdd(rows[2,3], const[3])", "[2,3] of [4,3]"},
      {"BiasAdd(rows[2,3,5,5], const[3]) data_format=NCHW",
       "[2,3,5,5] of [4,3,5,5]"},
  });
}

TEST(RowRulesTest, RowsMustBeAlignedWithRows) {
  ExpectPadded({
      {"AddV2(rows[2,3], rows[2,3])", "[2,3] of [4,3]"},
      {"AddV2(rows[2,3], rows[2,1])", "[2,3] of [4,3]"},
      {"AddV2(rows[2,3,5], rows[2,1,5])", "[2,3,5] of [4,3,5]"},
      // Rows of one input are aligned with columns of the other.
      {"AddV2(rows[3,1], rows[3])", kMixes},
      {"AddV2(rows[1,1], rows[1])", kMixes},
      {"AddV2(rows[3,3,3], rows[3,3])", kMixes},
  });
}

TEST(RowRulesTest, AConstantWithAsManyRowsAsTheBatch) {
  ExpectPadded({
      {"Sub(rows[2,3], const[2,3])", kConstant},
      {"AddN(rows[2,3], const[2,3])", kConstant},
      // An op broadcasts a batch of one row to the 4 rows of a constant. The
      // result has 4 rows for the step's one row, though it would be right for
      // 4 rows.
      {"Maximum(rows[1,3], const[4,3])", kMixes},
  });
}

TEST(RowRulesTest, Selects) {
  ExpectPadded({
      {"Select(rows[2,3]:bool, rows[2,3], rows[2,3])", "[2,3] of [4,3]"},
      {"Select(rows[]:bool, rows[2,3], rows[2,3])", "[2,3] of [4,3]"},
      {"Select(rows[2]:bool, rows[2,3], rows[2,3])", kMixes},
      {"SelectV2(rows[2,1]:bool, rows[2,3], rows[2,3])", "[2,3] of [4,3]"},
      {"SelectV2(rows[3]:bool, rows[3,3], rows[3,3])", kMixes},
  });
}

TEST(RowRulesTest, EnsureShape) {
  ExpectPadded({
      {"EnsureShape(rows[2,3]) shape=[-1,3]", "[2,3] of [4,3]"},
      {"EnsureShape(rows[2,3]) shape=[2,3]",
       "has no shape for 4 rows: Dimension 0 in both shapes must be equal, but "
       "are 2 and 4. Shapes are [2,3] and [4,3]."},
  });
}

TEST(RowRulesTest, MatMul) {
  ExpectPadded({
      {"MatMul(rows[2,3], const[3,5])", "[2,5] of [4,5]"},
      {"MatMul(rows[2,3], const[5,3]) transpose_b=true", "[2,5] of [4,5]"},
      {"MatMul(rows[2,3], const[2,5]) transpose_a=true", kMixes},
      {"x = rows[2,3]; MatMul(x, x) transpose_b=true", kMixes},
      {"x = rows[2,3]; MatMul(x, x) transpose_a=true", kMixes},
      {R"(_FusedMatMul(rows[2,3], const[3,5], const[5])
              fused_ops=["BiasAdd","Relu"])",
       "[2,5] of [4,5]"},
      {R"(_FusedMatMul(rows[2,3], const[3,5], const[5])
              fused_ops=["Softmax"])",
       kMixes},
  });
}

TEST(RowRulesTest, BatchMatMul) {
  ExpectPadded({
      {"BatchMatMulV2(rows[2,7,3], rows[2,3,5])", "[2,7,5] of [4,7,5]"},
      {"BatchMatMulV2(rows[2,6,7,3], rows[2,1,3,5])", "[2,6,7,5] of [4,6,7,5]"},
      {"BatchMatMulV2(rows[2,7,3], const[3,5])", "[2,7,5] of [4,7,5]"},
      {"BatchMatMulV2(rows[2,7,3], const[1,3,5])", "[2,7,5] of [4,7,5]"},
      {"BatchMatMulV2(const[7,3], rows[2,3,5])", "[2,7,5] of [4,7,5]"},
      {"BatchMatMulV2(rows[2,3], const[3,5])", "[2,5] of [4,5]"},
      {"BatchMatMulV2(const[3,7], rows[2,3,5]) adj_x=true",
       "[2,7,5] of [4,7,5]"},
      {"BatchMatMulV2(rows[2,3], const[2,5]) adj_x=true", kMixes},
      {"BatchMatMulV2(rows[2,2], rows[2,2])", kMixes},
      {"BatchMatMulV2(rows[2,3], const[9,3,5])", kMixes},
      {"BatchMatMulV2(rows[2,7,2], rows[2,5])", kMixes},
  });
}

TEST(RowRulesTest, Einsum) {
  ExpectPadded({
      {"Einsum(rows[2,7,3], const[3,5,6]) equation='abc,cde->abde'",
       "[2,7,5,6] of [4,7,5,6]"},
      {"Einsum(rows[2,7,3,5], rows[2,6,3,5]) equation='abcd,aecd->acbe'",
       "[2,3,7,6] of [4,3,7,6]"},
      {"Einsum(rows[2,3], rows[2,3]) equation='ab,cb->ac'", kMixes},
      {"Einsum(rows[2,3], rows[2,5]) equation='ab,ac->bc'", kMixes},
      {"Einsum(rows[2,3], rows[2,5]) equation='ab,ac->cb'", kMixes},
      {"Einsum(rows[2,2], rows[2,5]) equation='aa,ab->ab'", kMixes},
      {"Einsum(rows[2,3], const[3,5]) equation='...b,bc->...c'", kMixes},
  });
}

TEST(RowRulesTest, Reductions) {
  for (const char* op : {"Sum", "Mean", "Max", "Prod", "ArgMax", "ArgMin"}) {
    ExpectPadded({
        {absl::StrCat(op, "(rows[2,3,5], 1)"), "[2,5] of [4,5]"},
        {absl::StrCat(op, "(rows[2,3,5], -1)"), "[2,3] of [4,3]"},
        {absl::StrCat(op, "(rows[2,3,5], 0)"), kAlong},
        {absl::StrCat(op, "(rows[2,3,5], -3)"), kAlong},
    });
  }
  ExpectPadded({
      {"Sum(rows[2,3,5], {2,1})", "[2] of [4]"},
      {"Sum(rows[2,3,5], {1,0}) keep_dims=true", kAlong},
      {"L2Loss(rows[2,3])", kMixes},
      // The axis is a variable's value.
      {"Cumsum(rows[2,3], Cast(read(handle[])) DstT=int32)",
       "has an axis that is not a constant"},
  });
}

TEST(RowRulesTest, ScansAndOrders) {
  ExpectPadded({
      {"Cumsum(rows[2,3], 1)", "[2,3] of [4,3]"},
      {"Cumsum(rows[2,3], -2)", kAlong},
      {"Cumprod(rows[2,3], 1)", "[2,3] of [4,3]"},
      {"Cumprod(rows[2,3], -2)", kAlong},
      {"ReverseV2(rows[2,3], {-1})", "[2,3] of [4,3]"},
      {"ReverseV2(rows[2,3], {1,0})", kAlong},
      {"TopKV2(rows[2,3], 2)", "[2,2] of [4,2]"},
      {"TopKV2(rows[2], 2)", kAlong},
      {"Softmax(rows[2,3])", "[2,3] of [4,3]"},
      {"Softmax(rows[2])", kAlong},
      {"LogSoftmax(rows[2,3])", "[2,3] of [4,3]"},
      {"LogSoftmax(rows[2])", kAlong},
      {"MatrixBandPart(rows[2,3,3], 0, -1)", "[2,3,3] of [4,3,3]"},
      {"MatrixBandPart(rows[2,3], 0, -1)", kMixes},
  });
}

TEST(RowRulesTest, Concat) {
  ExpectPadded({
      {"ConcatV2(rows[2,3], rows[2,3], 1)", "[2,6] of [4,6]"},
      {"ConcatV2(rows[2,3], rows[2,3], -1)", "[2,6] of [4,6]"},
      {"ConcatV2(rows[2,3], rows[2,3], 0)", kAlong},
      {"ConcatV2(rows[2,3], const[2,3], -2)", kAlong},
      {"ConcatV2(rows[2,3], const[2,3], 1)", kConstant},
      {"x = rows[2,3]; Pack(x, x) axis=1", "[2,2,3] of [4,2,3]"},
      {"x = rows[2,3]; Pack(x, x) axis=-1", "[2,3,2] of [4,3,2]"},
      {"x = rows[2,3]; Pack(x, x) axis=0", kAlong},
      {"x = rows[2,3]; Pack(x, x) axis=-3", kAlong},
      {"Pack(rows[2,3], const[2,3]) axis=1", kConstant},
  });
}

TEST(RowRulesTest, Splits) {
  ExpectPadded({
      {"Split(1, rows[2,4]) num_split=2", "[2,2] of [4,2]"},
      {"Split(-2, rows[2,4]) num_split=2", kAlong},
      {"SplitV(rows[2,4], {1,3}, 1) num_split=2", "[2,1] of [4,1]"},
      {"SplitV(rows[2,4], {1,1}, 0) num_split=2", kAlong},
      {"Unpack(rows[2,4]) axis=1 num=4", "[2] of [4]"},
      {"Unpack(rows[2,4]) axis=0 num=2", kAlong},
      {"OneHot(rows[2]:int64, 5, const[], const[]) axis=-1", "[2,5] of [4,5]"},
      {"OneHot(rows[2]:int64, 5, const[], const[]) axis=1", "[2,5] of [4,5]"},
      {"OneHot(rows[2]:int64, 5, const[], const[]) axis=0", kAlong},
  });
}

TEST(RowRulesTest, Gather) {
  ExpectPadded({
      {"GatherV2(const[2,3,5], rows[2,3]:int64, 0)", "[2,3,3,5] of [4,3,3,5]"},
      {"GatherV2(const[2,3,5], rows[2,3]:int64, -3)", "[2,3,3,5] of [4,3,3,5]"},
      {"GatherV2(const[2,3,5], rows[2,3]:int64, 1)", kMixes},
      {"GatherV2(rows[2,3,5], const[2,3]:int64, 1)", "[2,2,3,5] of [4,2,3,5]"},
      {"GatherV2(rows[2,3,5], const[2,3]:int64, -1)", "[2,3,2,3] of [4,3,2,3]"},
      {"GatherV2(rows[2,3,5], const[2,3]:int64, 0)", kAlong},
      {"GatherV2(rows[2,3,5], rows[2,3]:int64, 1) batch_dims=1",
       "[2,3,5] of [4,3,5]"},
      {"GatherV2(rows[2,3,5], rows[2,3]:int64, 2) batch_dims=-1",
       "[2,3,3] of [4,3,3]"},
      {"GatherV2(rows[2,3,5], rows[2,3]:int64, 0)", kMixes},
      {"GatherV2(rows[2,3,5], rows[2,3]:int64, 1)", kMixes},
      {"GatherV2(const[2,3,5], rows[2,3]:int64, 1) batch_dims=1", kConstant},
      {"Gather(const[9,5], rows[2]:int64)", "[2,5] of [4,5]"},
      {"GatherNd(const[2,3,5], rows[2,7,2]:int64)", "[2,7,5] of [4,7,5]"},
      {"GatherNd(const[2,3,5], rows[2,3]:int64)", "[2] of [4]"},
      {"GatherNd(const[2,3,5], rows[2]:int64)", kMixes},
      {"GatherNd(rows[2,3,5], rows[2,7,2]:int64)", kMixes},
  });
}

TEST(RowRulesTest, Convolutions) {
  ExpectPadded({
      {"Conv2D(rows[2,8,8,3], const[3,3,3,5]) strides=[1,1,1,1] padding=SAME",
       "[2,8,8,5] of [4,8,8,5]"},
      {"Conv2D(rows[2,3,8,8], const[3,3,3,5]) strides=[1,1,1,1] padding=SAME"
       "    data_format=NCHW",
       "[2,5,8,8] of [4,5,8,8]"},
      {"x = rows[3,3,3,3]; Conv2D(x, x) strides=[1,1,1,1] padding=SAME",
       kMixes},
      // A transposed convolution, to a size that is read from its input.
      {"x = rows[2,4,4,5];"
       "many = Pack(size(Shape(x), {0}, {1}, {1}), 8, 8, 3);"
       "Conv2DBackpropInput(many, const[2,2,3,5], x) strides=[1,2,2,1]"
       "    padding=SAME",
       "[2,8,8,3] of [4,8,8,3]"},
  });
}

TEST(RowRulesTest, PoolsAndBlocks) {
  for (const char* op : {"MaxPool", "AvgPool"}) {
    ExpectPadded({
        {absl::StrCat(op, "(rows[2,8,8,3]) ksize=[1,2,2,1] strides=[1,2,2,1] ",
                      "padding=VALID"),
         "[2,4,4,3] of [4,4,4,3]"},
        {absl::StrCat(op, "(rows[2,8,8,3]) ksize=[2,1,1,1] strides=[2,1,1,1] ",
                      "padding=VALID"),
         kAlong},
    });
  }
  ExpectPadded({
      {"MaxPool(rows[2,4,8,8,4]) ksize=[1,1,2,2] strides=[1,1,2,2]"
       "    padding=VALID data_format=NCHW_VECT_C",
       "has a layout whose rows are not known"},
      {"SpaceToDepth(rows[2,8,8,3]) block_size=2", "[2,4,4,12] of [4,4,4,12]"},
      {"DepthToSpace(rows[2,8,8,8]) block_size=2",
       "[2,16,16,2] of [4,16,16,2]"},
      {"ResizeBilinear(rows[2,8,8,3], {5,7})", "[2,5,7,3] of [4,5,7,3]"},
  });
}

TEST(RowRulesTest, BatchNormalization) {
  const std::string norm =
      "c = const[3]; y = FusedBatchNormV3(rows[2,8,8,3], c, c, c, c)"
      "    is_training=";
  ExpectPadded({
      {norm + "false; y", "[2,8,8,3] of [4,8,8,3]"},
      {norm + "true; y", kMixes},
      {norm + "false; y:1", "is a result, and depends on the number of rows"},
      {"c = const[3]; FusedBatchNormV3(rows[3,8,8,3], c, c, rows[3], c)"
       "    is_training=false",
       kMixes},
  });
}

TEST(RowRulesTest, Paddings) {
  for (const std::string op : {"Pad", "PadV2", "MirrorPad"}) {
    const std::string more = op == "PadV2"       ? ", const[])"
                             : op == "MirrorPad" ? ") mode=SYMMETRIC"
                                                 : ")";
    ExpectPadded({
        {op + "(rows[2,3], {0,0;1,2}" + more, "[2,6] of [4,6]"},
        {op + "(rows[2,3], {0,1;0,0}" + more, kAlong},
        {op + "(rows[2,3], {1,0;0,0}" + more, kAlong},
    });
  }
}

TEST(RowRulesTest, Reshapes) {
  ExpectPadded({
      {"Reshape(rows[2,6], {-1,2,3})", "[2,2,3] of [4,2,3]"},
      {"Reshape(rows[2,6], {-1,2})", "[6,2] of [12,2]"},
      {"Reshape(rows[2,6], {-1})", "[12] of [24]"},
      {"Reshape(rows[2,6], {-1,12})", kNotRows},
      {"Reshape(rows[2,6], {4,-1})", "does not grow with the batch"},
      {"Reshape(rows[2,6], {2,-1})", kNotRows},
      {"ExpandDims(rows[2,6], 1)", "[2,1,6] of [4,1,6]"},
      {"ExpandDims(rows[2,6], -3)", kNotRows},
      {"Squeeze(rows[2,1,6])", "[2,6] of [4,6]"},
      // With a batch of one row, Squeeze also removes the batch dimension.
      {"Squeeze(rows[1,4])", "does not grow with the batch"},
      // Rows that a reshape split are aligned.
      {"flat = Reshape(rows[2,3,5], {-1,5});"
       "Reshape(MatMul(flat, const[5,7]), {-1,3,7})",
       "[2,3,7] of [4,3,7]"},
      {"x = rows[1,3]; AddV2(x, Reshape(x, {-1,1}))", kMixes},
  });
}

TEST(RowRulesTest, Slices) {
  constexpr char kSome[] = "takes some of the rows only";
  ExpectPadded({
      {"Slice(rows[2,3], {0,1}, {-1,2})", "[2,2] of [4,2]"},
      {"Slice(rows[2,3], {1,1}, {-1,2})", kSome},
      {"Slice(rows[2,3], {0,1}, {2,2})", kSome},
      // x[:, 1], x[:, -1:], x[..., 2], x[:, None]
      {"StridedSlice(rows[2,3,5], {0,1}, {0,2}, {1,1})"
       "    begin_mask=1 end_mask=1 shrink_axis_mask=2",
       "[2,5] of [4,5]"},
      {"StridedSlice(rows[2,3,5], {0,-1}, {0,0}, {1,1})"
       "    begin_mask=1 end_mask=3",
       "[2,1,5] of [4,1,5]"},
      {"StridedSlice(rows[2,3,5], {0,2}, {0,3}, {1,1})"
       "    ellipsis_mask=1 shrink_axis_mask=2",
       "[2,3] of [4,3]"},
      {"StridedSlice(rows[2,3,5], {0,0}, {0,1}, {1,1})"
       "    begin_mask=1 end_mask=1 new_axis_mask=2",
       "[2,1,3,5] of [4,1,3,5]"},
      // x[0], x[1:], x[:2], x[::-1], x[None], x[..., 1:, :, :]
      {"StridedSlice(rows[2,3,5], {0}, {1}, {1}) shrink_axis_mask=1", kSome},
      {"StridedSlice(rows[2,3,5], {1}, {0}, {1}) end_mask=1", kSome},
      {"StridedSlice(rows[2,3,5], {0}, {2}, {1})", kSome},
      {"StridedSlice(rows[2,3,5], {0}, {0}, {-1}) begin_mask=1 end_mask=1",
       kSome},
      {"StridedSlice(rows[2,3,5], {0}, {1}, {1}) new_axis_mask=1", kSome},
      {"StridedSlice(rows[2,3,5], {0,1,0,0}, {0,0,3,5}, {1,1,1,1})"
       "    ellipsis_mask=1 end_mask=2",
       kSome},
  });
}

TEST(RowRulesTest, TransposesAndTiles) {
  ExpectPadded({
      {"Transpose(rows[2,3,5], {0,2,1})", "[2,5,3] of [4,5,3]"},
      {"Transpose(rows[2,3,5], {1,0,2})",
       "moves the batch to another dimension"},
      {"Tile(rows[2,3], {1,2})", "[2,6] of [4,6]"},
      {"Tile(rows[2,3], {2,1})", kMixes},
      {"BroadcastTo(rows[2,3], {2,3})",
       "has no shape for 4 rows: Dimensions must be equal, but are 4 and 2"},
      {"BroadcastTo(rows[1,3], {4,3})", kMixes},
  });
}

}  // namespace
}  // namespace tensorflow::multistream
