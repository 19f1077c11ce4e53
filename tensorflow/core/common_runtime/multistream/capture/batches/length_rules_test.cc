// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows_fixture.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/padded_lengths.h"

namespace tensorflow::multistream {
namespace {

constexpr char kMixes[] = "mixes entries";
constexpr char kAlong[] = "is along the length";
constexpr char kSome[] = "takes some of the entries only";

// In its text, entries[2,3] is an argument with 3 entries in each of 2 rows.
class LengthStep : public TestStep {
 public:
  static constexpr int64_t kPadded = 5;

  // The result's shapes, and in how many blocks; then what the masks fill. Or
  // why padding is refused.
  std::string Pad(int64_t length) const {
    HaveEntries have = have_;
    have.arguments.resize(shapes.arguments.size(), false);
    have.received.resize(shapes.received.size(), false);
    const auto found = PaddedLengths(graph).Pad(shapes, have, length);
    if (!found.ok()) return std::string(found.status().message());
    const SizedResult& result = found->results[0];
    std::string text = result.shape.DebugString();
    if (result.blocks > 0) {
      absl::StrAppend(&text, " of ", result.padded.DebugString(), " in ",
                      result.blocks);
    }
    for (const NodeMask& it : found->masks) {
      static constexpr const char* kFills[] = {"0", "1", "low", "high", "mean"};
      absl::StrAppend(&text, ", ", it.mask.input, ":", it.mask.dim, " ",
                      kFills[static_cast<int>(it.mask.fill)]);
    }
    return text;
  }

 protected:
  Value Leaf(const std::string& kind, const TensorShape& shape,
             DataType type) override {
    if (kind != "entries") return TestStep::Leaf(kind, shape, type);
    have_.arguments.resize(shapes.arguments.size() + 1, false);
    have_.arguments.back() = true;
    return Take(shape, type);
  }

 private:
  HaveEntries have_;
};

constexpr auto Expect = ExpectPadded<LengthStep>;

TEST(LengthRulesTest, Elementwise) {
  Expect({
      {"Tanh(entries[2,3])", "[2,3] of [2,5] in 2"},
      {"Mul(entries[2,3,4], const[4])", "[2,3,4] of [2,5,4] in 2"},
      {"AddV2(entries[2,3,4], entries[2,3,1])", "[2,3,4] of [2,5,4] in 2"},
      {"AddV2(ExpandDims(entries[2,3], 2), ExpandDims(entries[2,3], 1))",
       "is a result with the length in two dimensions"},
      {"AddV2(entries[2,3,4], rows[2,1,4])", "[2,3,4] of [2,5,4] in 2"},
      {"BiasAdd(entries[2,3,4], const[4])", "[2,3,4] of [2,5,4] in 2"},
      {"BiasAdd(entries[2,3], const[3])",
       "has no shape for length 5: Dimensions must be equal, but are 5 and 3"},
  });
}

TEST(LengthRulesTest, SumsLeaveOutWhatIsAdded) {
  Expect({
      {"Sum(entries[2,3], 1)", "[2], 0:1 0"},
      {"Sum(entries[2,3,4], 2)", "[2,3] of [2,5] in 2"},
      {"Max(entries[2,3,4], {1,2}) keep_dims=true", "[2,1,1], 0:1 low"},
      {"Min(entries[2,3], -1)", "[2], 0:1 high"},
      {"Prod(entries[2,3], 1)", "[2], 0:1 1"},
      {"Mean(entries[2,3,4], 1)", "[2,4], 0:1 mean"},
      {"All(IsFinite(entries[2,3]), 1)", "[2], 0:1 1"},
      {"Softmax(entries[2,3])", "[2,3] of [2,5] in 2, 0:1 low"},
      {"Softmax(entries[2,3,4])", "[2,3,4] of [2,5,4] in 2"},
      {"Sum(Reshape(entries[2,3,4], {-1,4}), 0)", kMixes},
      {"Sum(entries[2,3]:int32, 1)", "sums entries of a type without a mask"},
      {"ArgMax(entries[2,3], 1)", kAlong},
      {"L2Loss(entries[2,3])", kMixes},
      {"Cumsum(entries[2,3], 1)", "[2,3] of [2,5] in 2"},
      {"Cumsum(entries[2,3], 1) reverse=true", kAlong},
      {"ReverseV2(entries[2,3], {1})", kAlong},
      {"TopKV2(entries[2,3], 2)", kAlong},
  });
}

TEST(LengthRulesTest, Products) {
  Expect({
      {"MatMul(Reshape(entries[2,3,4], {-1,4}), const[4,6])",
       "[6,6] of [10,6] in 2"},
      {"BatchMatMulV2(entries[2,3,4], const[4,6])", "[2,3,6] of [2,5,6] in 2"},
      {"BatchMatMulV2(entries[2,3,4], entries[2,3,4]) adj_y=true",
       "is a result with the length in two dimensions"},
      {"BatchMatMulV2(entries[2,3,4], entries[2,3,4]) adj_x=true",
       "[2,4,4], 0:1 0, 1:1 0"},
      {"Einsum(entries[2,3,4], const[4,2,5]) equation='abc,cde->abde'",
       "[2,3,2,5] of [2,5,2,5] in 2"},
      {"Einsum(entries[2,3,4], entries[2,3,4]) equation='abc,abd->acd'",
       "[2,4,4], 0:1 0, 1:1 0"},
      {"Conv2D(entries[2,3,4,1], const[3,3,1,2]) strides=[1,1,1,1] "
       "padding=SAME",
       "[2,3,4,2] of [2,5,4,2] in 2, 0:1 0"},
      {"Conv2D(Transpose(entries[2,3,4,1], {0,3,1,2}), const[3,3,1,2]) "
       "strides=[1,1,1,1] padding=SAME data_format=NCHW",
       "[2,2,3,4] of [2,2,5,4] in 4, 0:2 0"},
      {"Conv2D(entries[2,3,4,1], const[3,3,1,15]) strides=[1,1,1,1] "
       "padding=SAME data_format=NCHW",
       kAlong},
      {"Conv2D(entries[2,3,4,1], const[3,3,1,2]) strides=[1,2,1,1] "
       "padding=SAME",
       kMixes},
      {"Conv2D(entries[2,3,4,1], const[3,3,1,2]) strides=[1,1,1,1] "
       "padding=VALID",
       kMixes},
  });
}

TEST(LengthRulesTest, Moves) {
  Expect({
      {"Transpose(entries[2,3,4], {0,2,1})", "[2,4,3] of [2,4,5] in 8"},
      {"Transpose(entries[2,3], {1,0})", "[3,2] of [5,2] in 1"},
      {"Reshape(entries[2,3,4], {2,-1,2,2})", "[2,3,2,2] of [2,5,2,2] in 2"},
      {"Reshape(entries[2,3,4], {2,-1})", "[2,12] of [2,20] in 2"},
      {"Reshape(entries[2,3,4], {-1,3})",
       "has no shape for length 5: Dimension"
       " size must be evenly divisible by 3 but is 40"},
      {"ExpandDims(entries[2,3], 1)", "[2,1,3] of [2,1,5] in 2"},
      {"Squeeze(entries[2,3,1])", "[2,3] of [2,5] in 2"},
      {"ConcatV2(entries[2,3,4], entries[2,3,2], 2)",
       "[2,3,6] of [2,5,6] in 2"},
      {"ConcatV2(entries[2,3,4], entries[2,3,4], 1)", kAlong},
      {"Pack(entries[2,3], entries[2,3]) axis=1", "[2,2,3] of [2,2,5] in 4"},
      {"Slice(entries[2,3,4], {0,0,1}, {-1,-1,2})", "[2,3,2] of [2,5,2] in 2"},
      {"Slice(entries[2,3,4], {0,1,0}, {-1,-1,-1})", kSome},
      {"StridedSlice(entries[2,3,4], {0,1}, {0,2}, {1,1}) begin_mask=1 "
       "end_mask=1 shrink_axis_mask=2",
       "[2,4]"},
      {"StridedSlice(entries[2,3,4], {0,-1}, {0,0}, {1,1}) begin_mask=1 "
       "end_mask=1 shrink_axis_mask=2",
       kSome},
      {"StridedSlice(entries[2,3], {0,0}, {0,2}, {1,1}) begin_mask=1 "
       "end_mask=1",
       kSome},
      {"GatherV2(const[9,4], entries[2,3]:int32, 0)",
       "[2,3,4] of [2,5,4] in 2"},
      {"gather(table[9,4], entries[2,3]:int32)", "[2,3,4] of [2,5,4] in 2"},
      {"GatherV2(entries[2,3,4], {0,1}, 1)", kSome},
      {"OneHot(entries[2,3]:int32, 4, const[], const[])",
       "[2,3,4] of [2,5,4] in 2"},
      {"Pad(entries[2,3], {0,0;1,0})", kAlong},
      {"MatrixBandPart(entries[2,3,4], -1, 0)", "[2,3,4] of [2,5,4] in 2"},
      // A row of the merged dimension has another number.
      {"MatrixBandPart(Reshape(entries[2,3,4], {-1,4}), -1, 0)", kMixes},
  });
}

TEST(LengthRulesTest, Sizes) {
  const std::string x =
      "x = entries[2,3,4]; n = size(Shape(x), {1}, {2}, {1});";
  Expect({
      {x + "Reshape(x, Pack(2, n, 2, 2))", "[2,3,2,2] of [2,5,2,2] in 2"},
      {x + "AddV2(x, Slice(const[8,4], {0,0}, Pack(n, 4)))",
       "[2,3,4] of [2,5,4] in 2"},
      {x + "Mul(x, Slice(const[8,4], {1,0}, Pack(n, 4)))",
       "Slice 'Slice' mixes entries"},
      {x + "AddV2(x, GatherV2(const[8,4], Range(0, n, 1), 0))",
       "[2,3,4] of [2,5,4] in 2"},
      {x + "Fill(Pack(2, n), const[])", "[2,3] of [2,5] in 2"},
      {x + "Mul(x, Cast(n) DstT=float)",
       "Cast 'Cast' takes the length for a value"},
      {x + "Reshape(Mul(entries[2,3]:int32, n), {-1})",
       "Mul 'Mul' takes the length for a value"},
      // Positions that are counted from the end, and back.
      {x + "AddV2(x, GatherV2(const[8,4], "
           "AddV2(Sub(Range(0, n, 1), n), n), 0))",
       "[2,3,4] of [2,5,4] in 2"},
      {x + "Range(1, AddV2(n, 1), 1)", "[3] of [5] in 1"},
      {x + "Shape(x)", "is a result, and depends on the length"},
  });
}

TEST(LengthRulesTest, WhatIsNotKnown) {
  Expect({
      {"Roll(entries[2,3], 1, 1)", "is not known to keep entries apart"},
      {"MaxPool(entries[2,4,4,1]) ksize=[1,2,2,1] strides=[1,2,2,1] "
       "padding=SAME",
       kMixes},
  });
}

}  // namespace
}  // namespace tensorflow::multistream
