// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Compares the answers of IndependentRows for random steps with the steps'
// results on the CPU: for a batch, and for the same batch padded with garbage
// rows.

#include <cstring>

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/random_step_fixture.h"

namespace tensorflow::multistream {
namespace {

constexpr int kSeeds = 150;

class RandomRows : public RandomStep {
 public:
  explicit RandomRows(uint32_t seed) : RandomStep(seed) {
    const int64_t batch = 1 + Below(4);
    padded_ = batch + 1 + Below(4);
    for (const TensorShape& shape :
         {TensorShape({batch, 4}), TensorShape({batch, 4}),
          TensorShape({batch, 3, 4}), TensorShape({batch, 4, 4, 2}),
          TensorShape({batch}), TensorShape({})}) {
      Keep("rows", shape);
    }
    Add(absl::StrCat("ids0 = rows[", batch, "]:int32;", "ids1 = rows[", batch,
                     ",3]:int32"));
    for (const TensorShape& shape :
         {TensorShape({4}), TensorShape({batch, 4}), TensorShape({padded_, 4}),
          TensorShape({1, 4})}) {
      Keep("random", shape);
    }
    for (size_t i = 0; i < shapes.arguments.size(); ++i) {
      Feed(i, /*ids=*/i > 5, shapes.arguments[i].dims() == 0 ? -1 : 0, padded_);
    }
    TryOps();
  }

  void Compare() {
    if (kept() == 0) return;
    const std::vector<std::string> names = ReturnAll();
    const auto results = IndependentRows(graph).Pad(shapes, padded_);
    ASSERT_TRUE(results.ok()) << results.status();
    std::vector<Tensor> expected, padded;
    absl::Status status = Run(graph, feeds_, names, &expected);
    ASSERT_TRUE(status.ok()) << status;
    status = Run(graph, padded_feeds_, names, &padded);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < names.size(); ++i) {
      const BatchResult& result = (*results)[i];
      SCOPED_TRACE(names[i]);
      ASSERT_EQ(expected[i].shape(), result.shape);
      ASSERT_EQ(padded[i].shape(), result.padded);
      ASSERT_EQ(std::memcmp(expected[i].data(), padded[i].data(),
                            expected[i].TotalBytes()),
                0)
          << expected[i].DebugString(100) << padded[i].DebugString(100);
      if (result.is_rows) {
        ++padded_results_;
      } else {
        ASSERT_EQ(result.shape, result.padded);
      }
    }
  }

 private:
  std::optional<TensorShape> ShapeIfAccepted(bool* is_padded) const override {
    const auto results = IndependentRows(graph).Pad(shapes, padded_);
    if (!results.ok()) return std::nullopt;
    *is_padded = (*results)[0].is_rows;
    return (*results)[0].shape;
  }
};

TEST(IndependentRowsRandomTest, RowsOfWhatIsAcceptedAreIndependent) {
  int kept = 0, row_results = 0;
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RandomRows step(seed);
    kept += step.kept();
    ASSERT_NO_FATAL_FAILURE(step.Compare());
    row_results += step.padded_results();
  }
  // Otherwise the test has compared too little.
  EXPECT_GT(row_results, kSeeds * 10);
  RecordProperty("ops", kept);
  RecordProperty("row_results", row_results);
}

}  // namespace
}  // namespace tensorflow::multistream
