/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/examples/multistream/results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/examples/multistream/contains.h"

namespace tensorflow {
namespace multistream {
namespace {

template <typename T>
Tensor VectorOf(const std::vector<T>& values) {
  Tensor tensor(DataTypeToEnum<T>::value,
                TensorShape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) {
    tensor.flat<T>()(i) = values[i];
  }
  return tensor;
}

Tensor Floats(const std::vector<float>& values) { return VectorOf(values); }

TEST(CompareTest, EqualBitsAreRight) {
  const float nan = std::nanf("");
  const ResultSet results = {Floats({1, nan}), VectorOf<int64_t>({3})};
  const Difference difference =
      Compare(results, {Floats({1, nan}), VectorOf<int64_t>({3})}, 0);
  EXPECT_FALSE(difference.wrong);
  EXPECT_EQ(difference.max_absolute, 0);
}

TEST(CompareTest, OneBitIsWrongWithoutTolerance) {
  const float next = std::nextafter(1.0f, 2.0f);
  const Difference difference =
      Compare({Floats({1, next})}, {Floats({1, 1})}, 0);
  EXPECT_TRUE(difference.wrong);
  EXPECT_EQ(difference.max_absolute, next - 1.0f);
  EXPECT_EQ(difference.max_relative, next - 1.0f);
  EXPECT_TRUE(Contains(difference.first, {"output 0[1]"}));
}

TEST(CompareTest, SignOfZeroIsWrongOnlyWithoutTolerance) {
  EXPECT_TRUE(Compare({Floats({-0.0f})}, {Floats({0.0f})}, 0).wrong);
  EXPECT_FALSE(Compare({Floats({-0.0f})}, {Floats({0.0f})}, 1e-9).wrong);
}

TEST(CompareTest, ToleranceIsAbsoluteBelowOneAndRelativeAbove) {
  EXPECT_FALSE(Compare({Floats({0.0f})}, {Floats({0.05f})}, 0.1).wrong);
  EXPECT_FALSE(Compare({Floats({105})}, {Floats({100})}, 0.1).wrong);
  EXPECT_TRUE(Compare({Floats({0.0f})}, {Floats({0.5f})}, 0.1).wrong);
  EXPECT_TRUE(Compare({Floats({111})}, {Floats({100})}, 0.1).wrong);
}

TEST(CompareTest, DifferencesAreReportedWithinTolerance) {
  const Difference difference =
      Compare({Floats({102, 1})}, {Floats({100, 1})}, 0.1);
  EXPECT_FALSE(difference.wrong);
  EXPECT_FLOAT_EQ(difference.max_absolute, 2);
  EXPECT_FLOAT_EQ(difference.max_relative, 0.02);
}

TEST(CompareTest, NaNInsteadOfANumberIsWrongWhateverTheTolerance) {
  const Difference difference =
      Compare({Floats({std::nanf("")})}, {Floats({1})}, 1e30);
  EXPECT_TRUE(difference.wrong);
  EXPECT_TRUE(std::isinf(difference.max_absolute));
  EXPECT_TRUE(Compare({Floats({1})}, {Floats({std::nanf("")})}, 1e30).wrong);
}

TEST(CompareTest, InfinityIsComparedByValue) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(Compare({Floats({infinity})}, {Floats({infinity})}, 0).wrong);
  EXPECT_TRUE(Compare({Floats({infinity})}, {Floats({1})}, 1).wrong);
}

TEST(CompareTest, ShapeTypeAndNumberOfOutputsCount) {
  EXPECT_TRUE(Contains(Compare({Floats({1})}, {Floats({1, 1})}, 1).first,
                       {"output 0 is float[1], the reference is float[2]"}));
  EXPECT_TRUE(Compare({Floats({1})}, {VectorOf<int32_t>({1})}, 1).wrong);
  EXPECT_TRUE(Compare({}, {Floats({1})}, 1).wrong);
}

TEST(CompareTest, OtherTypesAreCompared) {
  EXPECT_TRUE(
      Compare({VectorOf<int64_t>({1})}, {VectorOf<int64_t>({2})}, 0).wrong);
  EXPECT_FALSE(
      Compare({VectorOf<tstring>({"a"})}, {VectorOf<tstring>({"a"})}, 0).wrong);
  EXPECT_TRUE(
      Compare({VectorOf<tstring>({"a"})}, {VectorOf<tstring>({"b"})}, 9).wrong);
  EXPECT_TRUE(Compare({VectorOf<Eigen::half>({Eigen::half(1)})},
                      {VectorOf<Eigen::half>({Eigen::half(2)})}, 0)
                  .wrong);
}

class ReferenceFileTest : public ::testing::Test {
 protected:
  ReferenceFileTest() {
    origin_.model_fingerprint = 0x123456789abcdef0;
    origin_.input_names = {"a", "b=c"};
    origin_.inputs_fingerprint = 42;
    origin_.output_names = {"x", "y"};
    origin_.batch_size = 16;
    origin_.seed = 7;
    origin_.input_sets = 2;
    reference_ = {{Floats({1, std::nanf("")}), VectorOf<tstring>({"p", ""})},
                  {Floats({-0.0f}), VectorOf<tstring>({})}};
    path_ = absl::StrCat(::testing::TempDir(), "/reference_file_test");
    EXPECT_TRUE(SaveReference(path_, origin_, reference_).ok());
  }

  std::string LoadError(const Origin& origin) {
    return std::string(LoadReference(path_, origin).status().message());
  }

  std::string Content() {
    std::string content;
    EXPECT_TRUE(ReadFileToString(Env::Default(), path_, &content).ok());
    return content;
  }

  void Replace(const std::string& content) {
    EXPECT_TRUE(WriteStringToFile(Env::Default(), path_, content).ok());
  }

  Origin origin_;
  std::vector<ResultSet> reference_;
  std::string path_;
};

TEST_F(ReferenceFileTest, KeepsEveryBit) {
  const auto loaded = LoadReference(path_, origin_);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ASSERT_EQ(loaded->size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(Compare((*loaded)[i], reference_[i], 0).wrong) << i;
  }
}

TEST_F(ReferenceFileTest, LeavesNoUnfinishedFile) {
  EXPECT_FALSE(
      Env::Default()->FileExists(absl::StrCat(path_, ".unfinished")).ok());
}

TEST_F(ReferenceFileTest, AnotherRunIsRefusedByWhatDiffers) {
  Origin other = origin_;
  other.batch_size = 8;
  EXPECT_TRUE(
      Contains(LoadError(other), {"batch_size=16", "this run's batch_size=8"}));
  other = origin_;
  other.model_fingerprint = 1;
  EXPECT_TRUE(Contains(LoadError(other), {"model fingerprint"}));
  other = origin_;
  other.output_names = {"x", "z"};
  EXPECT_TRUE(Contains(LoadError(other), {"output names=x y"}));
  other = origin_;
  other.seed = 8;
  EXPECT_TRUE(Contains(LoadError(other), {"--seed=7"}));
  other = origin_;
  other.inputs_fingerprint = 43;
  EXPECT_TRUE(Contains(LoadError(other), {"inputs fingerprint"}));
}

TEST_F(ReferenceFileTest, TruncatedFileIsRefused) {
  const std::string content = Content();
  for (size_t cut : {content.size() - 1, content.size() / 2}) {
    Replace(content.substr(0, cut));
    EXPECT_FALSE(LoadReference(path_, origin_).ok()) << cut;
  }
  Replace(content.substr(0, content.size() - 3));
  EXPECT_TRUE(Contains(LoadError(origin_), {"is damaged"}));
}

TEST_F(ReferenceFileTest, ChangedByteIsRefused) {
  std::string content = Content();
  content[content.size() - 6] ^= 1;
  Replace(content);
  EXPECT_TRUE(Contains(LoadError(origin_), {"is damaged"}));
}

TEST_F(ReferenceFileTest, LongerFileIsRefused) {
  const std::string content = Content();
  Replace(content + content);
  EXPECT_TRUE(Contains(LoadError(origin_), {"more records"}));
}

TEST_F(ReferenceFileTest, OtherFileIsRefused) {
  Replace("allow_soft_placement: true\n");
  EXPECT_TRUE(Contains(LoadError(origin_), {"is not a reference that"}));
  path_ = "/no/such/file";
  EXPECT_TRUE(Contains(LoadError(origin_),
                       {"--reference '/no/such/file' cannot be read"}));
  path_ = ::testing::TempDir();
  EXPECT_TRUE(Contains(LoadError(origin_), {"folder"}));
}

TEST_F(ReferenceFileTest, UnwritablePathIsNamed) {
  EXPECT_TRUE(Contains(
      std::string(
          SaveReference("/no/such/file", origin_, reference_).message()),
      {"--save-reference '/no/such/file' cannot be written"}));
}

TEST(FingerprintTest, DependsOnValuesAndShapes) {
  Tensor wide(DT_FLOAT, TensorShape({1, 2}));
  wide.flat<float>()(0) = 1;
  wide.flat<float>()(1) = 2;
  const uint64_t fingerprint = FingerprintOf({{Floats({1, 2})}});
  EXPECT_EQ(fingerprint, FingerprintOf({{Floats({1, 2})}}));
  EXPECT_NE(fingerprint, FingerprintOf({{Floats({1, 3})}}));
  EXPECT_NE(fingerprint, FingerprintOf({{wide}}));
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
