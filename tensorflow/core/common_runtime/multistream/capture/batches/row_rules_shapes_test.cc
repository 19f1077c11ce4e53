// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace multistream {
namespace {

// Images.

TestStep::Attrs Window(const std::vector<int>& size) {
  return [=](NodeBuilder* node) {
    node->Attr("ksize", size).Attr("strides", size).Attr("padding", "VALID");
  };
}

TEST(RowRulesShapesTest, Convolutions) {
  const auto convolution = [](const std::string& format) {
    return Padded([&](TestStep& step) {
      const bool last = format == "NHWC";
      return step.Op("Conv2D",
                     {step.Take(last ? TensorShape({2, 8, 8, 3})
                                     : TensorShape({2, 3, 8, 8})),
                      step.Floats({3, 3, 3, 5})},
                     [&](NodeBuilder* node) {
                       node->Attr("strides", std::vector<int>{1, 1, 1, 1})
                           .Attr("padding", "SAME")
                           .Attr("data_format", format);
                     });
    });
  };
  EXPECT_EQ(convolution("NHWC"), "[2,8,8,5] of [4,8,8,5]");
  EXPECT_EQ(convolution("NCHW"), "[2,5,8,8] of [4,5,8,8]");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({3, 3, 3, 3});
              return step.Op("Conv2D", {x, x}, [](NodeBuilder* node) {
                node->Attr("strides", std::vector<int>{1, 1, 1, 1})
                    .Attr("padding", "SAME");
              });
            }),
            "Conv2D 'Conv2D' mixes rows");
  // A transposed convolution, to a size that is read from its input.
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 4, 4, 5});
              const Value size =
                  step.Op("Pack", {step.Size(step.Op("Shape", {x}), 0),
                                   step.Int(8), step.Int(8), step.Int(3)});
              return step.Op(
                  "Conv2DBackpropInput", {size, step.Floats({2, 2, 3, 5}), x},
                  [](NodeBuilder* node) {
                    node->Attr("strides", std::vector<int>{1, 2, 2, 1})
                        .Attr("padding", "SAME");
                  });
            }),
            "[2,8,8,3] of [4,8,8,3]");
}

TEST(RowRulesShapesTest, PoolsAndBlocks) {
  for (const char* op : {"MaxPool", "AvgPool"}) {
    EXPECT_EQ(PaddedOp(op, {8, 8, 3}, nullptr, Window({1, 2, 2, 1})),
              "[2,4,4,3] of [4,4,4,3]");
    EXPECT_EQ(PaddedOp(op, {8, 8, 3}, nullptr, Window({2, 1, 1, 1})),
              std::string(op) + " '" + op + "' is along the batch");
  }
  EXPECT_EQ(PaddedOp("MaxPool", {4, 8, 8, 4}, nullptr,
                     [](NodeBuilder* node) {
                       Window({1, 1, 2, 2})(node);
                       node->Attr("data_format", "NCHW_VECT_C");
                     }),
            "MaxPool 'MaxPool' has a layout whose rows are not known");
  EXPECT_EQ(PaddedOp("SpaceToDepth", {8, 8, 3}, nullptr, Attr("block_size", 2)),
            "[2,4,4,12] of [4,4,4,12]");
  EXPECT_EQ(PaddedOp("DepthToSpace", {8, 8, 8}, nullptr, Attr("block_size", 2)),
            "[2,16,16,2] of [4,16,16,2]");
  EXPECT_EQ(PaddedOp("ResizeBilinear", {8, 8, 3}, Numbers({5, 7})),
            "[2,5,7,3] of [4,5,7,3]");
}

TEST(RowRulesShapesTest, BatchNormalization) {
  const auto norm = [](bool is_training, int output, bool rows_as_mean) {
    return Padded([&](TestStep& step) {
      const Value fixed = step.Floats({3});
      const Value mean = rows_as_mean ? step.Take({3}) : fixed;
      const int64_t batch = rows_as_mean ? 3 : 2;
      const Value x = step.Take({batch, 8, 8, 3});
      Value y = step.Op("FusedBatchNormV3", {x, fixed, fixed, mean, fixed},
                        Attr("is_training", is_training));
      y.index = output;
      return y;
    });
  };
  EXPECT_EQ(norm(false, 0, false), "[2,8,8,3] of [4,8,8,3]");
  EXPECT_EQ(norm(true, 0, false),
            "FusedBatchNormV3 'FusedBatchNormV3' mixes rows");
  EXPECT_EQ(norm(false, 1, false),
            "FusedBatchNormV3 'FusedBatchNormV3' is a result, and depends on "
            "the number of rows");
  EXPECT_EQ(norm(false, 0, true),
            "FusedBatchNormV3 'FusedBatchNormV3' mixes rows");
}

TEST(RowRulesShapesTest, Paddings) {
  const auto pad = [](const char* op, const std::vector<int32_t>& paddings) {
    return Padded([&](TestStep& step) {
      Tensor tensor(DT_INT32, TensorShape({2, 2}));
      std::copy(paddings.begin(), paddings.end(),
                tensor.flat<int32_t>().data());
      Values inputs = {step.Take({2, 3}), step.Const(tensor)};
      if (std::string(op) == "PadV2") inputs.push_back(step.Floats({}));
      return step.Op(op, inputs, [&](NodeBuilder* node) {
        if (std::string(op) == "MirrorPad") node->Attr("mode", "SYMMETRIC");
      });
    });
  };
  for (const std::string op : {"Pad", "PadV2", "MirrorPad"}) {
    EXPECT_EQ(pad(op.c_str(), {0, 0, 1, 2}), "[2,6] of [4,6]");
    EXPECT_EQ(pad(op.c_str(), {0, 1, 0, 0}),
              op + " '" + op + "' is along the batch");
    EXPECT_EQ(pad(op.c_str(), {1, 0, 0, 0}),
              op + " '" + op + "' is along the batch");
  }
}

// Data movement and reshaping.

TEST(RowRulesShapesTest, Reshapes) {
  EXPECT_EQ(PaddedOp("Reshape", {6}, Numbers({-1, 2, 3})),
            "[2,2,3] of [4,2,3]");
  EXPECT_EQ(PaddedOp("Reshape", {6}, Numbers({-1, 2})), "[6,2] of [12,2]");
  EXPECT_EQ(PaddedOp("Reshape", {6}, Numbers({-1})), "[12] of [24]");
  EXPECT_EQ(PaddedOp("Reshape", {6}, Numbers({-1, 12})),
            "Reshape 'Reshape' gives what has no rows, or not those of the "
            "batch");
  EXPECT_EQ(PaddedOp("Reshape", {6}, Numbers({4, -1})),
            "Reshape 'Reshape' does not grow with the batch");
  EXPECT_EQ(
      PaddedOp("Reshape", {6}, Numbers({2, -1})),
      "Reshape 'Reshape' gives what has no rows, or not those of the batch");
  EXPECT_EQ(PaddedOp("ExpandDims", {6}, Axis(1)), "[2,1,6] of [4,1,6]");
  EXPECT_EQ(PaddedOp("ExpandDims", {6}, Axis(-3)),
            "ExpandDims 'ExpandDims' gives what has no rows, or not those of "
            "the batch");
  EXPECT_EQ(PaddedOp("Squeeze", {1, 6}), "[2,6] of [4,6]");
  // With a batch of one row, Squeeze also removes the batch dimension.
  EXPECT_EQ(Padded([](TestStep& step) {
              return step.Op("Squeeze", {step.Take({1, 4})});
            }),
            "Squeeze 'Squeeze' does not grow with the batch");
}

TEST(RowRulesShapesTest, RowsThatAReshapeSplitAreAligned) {
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({2, 3, 5});
              const Value flat = step.Op("Reshape", {x, step.Ints({-1, 5})});
              const Value y = step.Op("MatMul", {flat, step.Floats({5, 7})});
              return step.Op("Reshape", {y, step.Ints({-1, 3, 7})});
            }),
            "[2,3,7] of [4,3,7]");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({1, 3});
              const Value flat = step.Op("Reshape", {x, step.Ints({-1, 1})});
              return step.Op("AddV2", {x, flat});
            }),
            "AddV2 'AddV2' mixes rows");
}

TEST(RowRulesShapesTest, Slices) {
  const auto slice = [](const std::vector<int32_t>& begin,
                        const std::vector<int32_t>& size) {
    return PaddedOp("Slice", {3}, [&](TestStep& step) {
      return Values{step.Ints(begin), step.Ints(size)};
    });
  };
  EXPECT_EQ(slice({0, 1}, {-1, 2}), "[2,2] of [4,2]");
  EXPECT_EQ(slice({1, 1}, {-1, 2}),
            "Slice 'Slice' takes some of the rows only");
  EXPECT_EQ(slice({0, 1}, {2, 2}), "Slice 'Slice' takes some of the rows only");
}

TEST(RowRulesShapesTest, StridedSlices) {
  const auto slice = [](const std::vector<int32_t>& begin,
                        const std::vector<int32_t>& end, int stride,
                        const std::vector<std::string>& masks) {
    return PaddedOp(
        "StridedSlice", {3, 5},
        [&](TestStep& step) {
          std::vector<int32_t> strides(begin.size(), 1);
          strides[0] = stride;
          return Values{step.Ints(begin), step.Ints(end), step.Ints(strides)};
        },
        [&](NodeBuilder* node) {
          for (const std::string& mask : masks) {
            const int bits = mask.back() - '0';
            node->Attr(mask.substr(0, mask.size() - 1), bits);
          }
        });
  };
  const std::string refused =
      "StridedSlice 'StridedSlice' takes some of the rows only";
  // x[:, 1], x[:, -1:], x[..., 2], x[:, None]
  EXPECT_EQ(slice({0, 1}, {0, 2}, 1,
                  {"begin_mask1", "end_mask1", "shrink_axis_mask2"}),
            "[2,5] of [4,5]");
  EXPECT_EQ(slice({0, -1}, {0, 0}, 1, {"begin_mask1", "end_mask3"}),
            "[2,1,5] of [4,1,5]");
  EXPECT_EQ(slice({0, 2}, {0, 3}, 1, {"ellipsis_mask1", "shrink_axis_mask2"}),
            "[2,3] of [4,3]");
  EXPECT_EQ(
      slice({0, 0}, {0, 1}, 1, {"begin_mask1", "end_mask1", "new_axis_mask2"}),
      "[2,1,3,5] of [4,1,3,5]");
  // x[0], x[1:], x[:2], x[::-1], x[None], x[..., 1:, :, :]
  EXPECT_EQ(slice({0}, {1}, 1, {"shrink_axis_mask1"}), refused);
  EXPECT_EQ(slice({1}, {0}, 1, {"end_mask1"}), refused);
  EXPECT_EQ(slice({0}, {2}, 1, {}), refused);
  EXPECT_EQ(slice({0}, {0}, -1, {"begin_mask1", "end_mask1"}), refused);
  EXPECT_EQ(slice({0}, {1}, 1, {"new_axis_mask1"}), refused);
  EXPECT_EQ(
      slice({0, 1, 0, 0}, {0, 0, 3, 5}, 1, {"ellipsis_mask1", "end_mask2"}),
      refused);
}

TEST(RowRulesShapesTest, TransposesAndTiles) {
  EXPECT_EQ(PaddedOp("Transpose", {3, 5}, Numbers({0, 2, 1})),
            "[2,5,3] of [4,5,3]");
  EXPECT_EQ(PaddedOp("Transpose", {3, 5}, Numbers({1, 0, 2})),
            "Transpose 'Transpose' moves the batch to another dimension");
  EXPECT_EQ(PaddedOp("Tile", {3}, Numbers({1, 2})), "[2,6] of [4,6]");
  EXPECT_EQ(PaddedOp("Tile", {3}, Numbers({2, 1})), "Tile 'Tile' mixes rows");
  EXPECT_EQ(PaddedOp("BroadcastTo", {3}, Numbers({2, 3})),
            "BroadcastTo 'BroadcastTo' has no shape for 4 rows: Dimensions "
            "must be equal, but are 4 and 2");
  EXPECT_EQ(Padded([](TestStep& step) {
              const Value x = step.Take({1, 3});
              return step.Op("BroadcastTo", {x, step.Ints({4, 3})});
            }),
            "BroadcastTo 'BroadcastTo' mixes rows");
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
