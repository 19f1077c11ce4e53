// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares the answers of PaddedLengths for random steps with the steps'
// results on the CPU: for a length, and with masks for the same entries padded
// with garbage.

#include <cstring>

#include "tensorflow/core/common_runtime/multistream/capture/batches/padded_lengths.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/random_step_fixture.h"

namespace tensorflow::multistream {
namespace {

constexpr int kSeeds = 150;

class RandomEntries : public RandomStep {
 public:
  explicit RandomEntries(uint32_t seed) : RandomStep(seed) {
    const int64_t batch = 1 + Below(3);
    length_ = 1 + Below(4);
    padded_ = length_ + 1 + Below(4);
    for (const TensorShape& shape :
         {TensorShape({batch, length_}), TensorShape({batch, length_, 4}),
          TensorShape({batch, length_, 4}), TensorShape({batch, length_, 4, 2}),
          TensorShape({batch, 4}), TensorShape({})}) {
      Keep("rows", shape);
    }
    Add(absl::StrCat("ids0 = rows[", batch, ",", length_, "]:int32;",
                     "ids1 = rows[", batch, ",3]:int32"));
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({batch, 4}), TensorShape({8, 4}),
          TensorShape({1, 4})}) {
      Keep("random", shape);
    }
    for (size_t i = 0; i < shapes.arguments.size(); ++i) {
      const bool entries = i < 4 || i == 6;
      have_.arguments.push_back(entries);
      Feed(i, /*ids=*/i > 5, entries ? 1 : -1, padded_);
    }
    for (const char* op :
         {"<<Sum|Max|Min|Prod|EuclideanNorm>>($x, <<1|2|-1|{1,2}>>) "
          "keep_dims=<<true|false>>",
          "<<Any|All>>(IsFinite($x), <<1|-1>>)",
          "Mul(Softmax(Transpose($x, {0,2,1})), scale[])",
          "<<Sum|Max>>(Transpose($x, {0,2,1}), -1)",
          "BatchMatMulV2($x, $y) adj_x=true",
          "Mul(Softmax(BatchMatMulV2($x, $x) adj_y=true), scale[])",
          "BatchMatMulV2(BatchMatMulV2($x, $y) adj_y=true, $y)",
          "Einsum($x, $y) equation='<<abc,abd->acd|ab,ab->a|abc,abc->ac|abc,"
          "adc->abd|ab,abc->ac>>'",
          "GatherV2(random[8,4], Range(0, $size, 1), 0)",
          "Slice(random[8,4], {0,0}, Pack($size, 4))",
          "StridedSlice($x, {0,<<0|-1|1>>}, {0,0}, {1,1}) begin_mask=1 "
          "end_mask=1 shrink_axis_mask=2",
          "MatrixBandPart($x, -1, 0)", "Mul(Mean($x, <<1|2|{1,2}>>), scale[])",
          "Cast(GreaterEqual(Reshape(Range(0, $size, 1), {-1,1}), "
          "AddV2(Sub(Range(0, $size, 1), $size), $size))) DstT=float",
          "Conv2D($x, random[<<1|2|3>>,3,2,2]) strides=[1,<<1|1|2>>,1,1] "
          "padding=<<SAME|SAME|VALID>>",
          "Reshape($x, Pack(-1, $last))", "Reshape($x, Pack($size, $size, -1))",
          "Transpose(Reshape($x, Pack($size, $size, 2, -1)), {0,2,1,3})"}) {
      ops_.insert(ops_.end(), 3, op);
    }
    TryOps();
  }

  int masks() const { return masks_; }

  void Compare() {
    if (kept() == 0) return;
    const std::vector<std::string> names = ReturnAll();
    const auto found = PaddedLengths(graph).Pad(shapes, have_, padded_);
    ASSERT_TRUE(found.ok()) << found.status();
    masks_ = found->masks.size();
    const auto masked = WithMasks(graph, found->masks, "");
    ASSERT_TRUE(masked.ok()) << masked.status();
    Tensor mask(DT_BOOL, {padded_});
    for (int i = 0; i < padded_; ++i) mask.flat<bool>()(i) = i < length_;
    for (const Node* node : (*masked)->op_nodes()) {
      if (node->IsRecv()) padded_feeds_.push_back({node->name(), mask});
    }
    std::vector<Tensor> expected, padded;
    absl::Status status = Run(graph, feeds_, names, &expected);
    ASSERT_TRUE(status.ok()) << status;
    status = Run(**masked, padded_feeds_, names, &padded);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < names.size(); ++i) {
      const LengthResult& result = found->results[i];
      SCOPED_TRACE(names[i]);
      ASSERT_EQ(expected[i].shape(), result.shape);
      ASSERT_EQ(padded[i].shape(), result.padded);
      const int64_t blocks = std::max<int64_t>(result.blocks, 1);
      const size_t bytes = expected[i].TotalBytes() / blocks;
      const size_t more = padded[i].TotalBytes() / blocks;
      for (int64_t k = 0; k < blocks; ++k) {
        ASSERT_EQ(
            std::memcmp(static_cast<char*>(expected[i].data()) + k * bytes,
                        static_cast<char*>(padded[i].data()) + k * more, bytes),
            0)
            << expected[i].DebugString(100) << padded[i].DebugString(100);
      }
      if (result.blocks > 0) {
        ++padded_results_;
      } else {
        ASSERT_EQ(result.shape, result.padded);
      }
    }
  }

 private:
  std::optional<TensorShape> ShapeIfAccepted(bool* is_padded) const override {
    const auto found = PaddedLengths(graph).Pad(shapes, have_, padded_);
    if (!found.ok()) return std::nullopt;
    *is_padded = found->results[0].blocks > 0 || !found->masks.empty();
    return found->results[0].shape;
  }

  int64_t length_;
  HaveEntries have_;
  int masks_ = 0;
};

TEST(PaddedLengthsRandomTest, AddedEntriesChangeNothingInWhatIsAccepted) {
  int kept = 0, results = 0, masks = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomEntries step(seed);
    kept += step.kept();
    ASSERT_NO_FATAL_FAILURE(step.Compare());
    results += step.padded_results();
    masks += step.masks();
  }
  // Otherwise the test has compared too little.
  EXPECT_GT(results, kSeeds * 3);
  EXPECT_GT(masks, kSeeds);
  RecordProperty("ops", kept);
  RecordProperty("results", results);
  RecordProperty("masks", masks);
}

}  // namespace
}  // namespace tensorflow::multistream
