// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"

#include <gtest/gtest.h>

#include "tensorflow/core/common_runtime/multistream/hooks/replaced_cuda_functions.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/util/autotune_maps/conv_autotune_maps.h"

namespace tensorflow::multistream {
namespace {

class ConvRunnersTest : public ::testing::Test {
 protected:
  static ConvParameters Parameters(int batch) {
    ConvParametersProto proto;
    proto.set_batch(batch);
    return ConvParameters(/*device_id=*/0, proto);
  }
  static se::dnn::AlgorithmDesc Algorithm(int id) {
    return se::dnn::AlgorithmDesc(id, /*use_tensor_ops=*/false);
  }

  StreamRecord record_;
  FakeStreamGroup a_{0, 0, &record_};
  FakeStreamGroup b_{0, 1, &record_};
};

template <typename Map, typename Op>
void ExpectARunnerForEachGroup(const ConvParameters& parameters,
                               const se::dnn::AlgorithmDesc& first,
                               const se::dnn::AlgorithmDesc& second,
                               StreamGroup* a, StreamGroup* b) {
  using Entry = AutotuneEntry<Op>;
  auto* map = Map::GetInstance();
  auto find = [&](StreamGroup* group) {
    GroupOnThread on(group);
    Entry entry;
    EXPECT_TRUE(map->Find(parameters, &entry));
    return entry;
  };
  map->Insert(parameters, Entry(first, second));
  const Entry of_a = find(a);
  const Entry of_b = find(b);
  EXPECT_NE(of_a.GetOpRunners().primary, of_b.GetOpRunners().primary);
  EXPECT_NE(of_a.GetOpRunners().no_scratch_fallback,
            of_b.GetOpRunners().no_scratch_fallback);
  // Both have the table's algorithms.
  EXPECT_EQ(of_a, of_b);
  EXPECT_EQ(of_b.GetOpRunners().primary->ToAlgorithmDesc(), first);
  EXPECT_EQ(of_b.GetOpRunners().no_scratch_fallback->ToAlgorithmDesc(), second);
  // A runner is made once.
  EXPECT_EQ(find(a).GetOpRunners().primary, of_a.GetOpRunners().primary);
  EXPECT_EQ(find(b).GetOpRunners().primary, of_b.GetOpRunners().primary);
  EXPECT_NE(find(nullptr).GetOpRunners().primary, nullptr);
}

TEST_F(ConvRunnersTest, EachGroupHasARunnerForTheSameAlgorithm) {
  ExpectARunnerForEachGroup<ConvAutotuneMap, se::dnn::ConvOp>(
      Parameters(1), Algorithm(7), Algorithm(8), &a_, &b_);
  ExpectARunnerForEachGroup<FusedConvAutotuneMap, se::dnn::FusedConvOp>(
      Parameters(2), Algorithm(3), Algorithm(4), &a_, &b_);
}

TEST_F(ConvRunnersTest, WhatIsNotInTheTableIsNotFound) {
  auto* map = ConvAutotuneMap::GetInstance();
  AutotuneEntry<se::dnn::ConvOp> entry;
  EXPECT_FALSE(map->Find(Parameters(3), &entry));
  // Without a fallback there is none.
  map->Insert(Parameters(4),
              AutotuneEntry<se::dnn::ConvOp>(Algorithm(1), absl::nullopt));
  ASSERT_TRUE(map->Find(Parameters(4), &entry));
  EXPECT_NE(entry.GetOpRunners().primary, nullptr);
  EXPECT_EQ(entry.GetOpRunners().no_scratch_fallback, nullptr);
}

TEST_F(ConvRunnersTest, ManyShapesOnManyGroupsAreBounded) {
  auto* map = ConvAutotuneMap::GetInstance();
  constexpr int kFirst = 1000;
  const int shapes = static_cast<int>(kMostConvRunners);
  const size_t before = ConvRunnersKept();
  AutotuneEntry<se::dnn::ConvOp> first_of_all;
  for (int i = 0; i < shapes; ++i) {
    map->Insert(Parameters(kFirst + i),
                AutotuneEntry<se::dnn::ConvOp>(Algorithm(i), Algorithm(i + 1)));
    for (FakeStreamGroup* group : {&a_, &b_}) {
      GroupOnThread on(group);
      AutotuneEntry<se::dnn::ConvOp> entry;
      ASSERT_TRUE(map->Find(Parameters(kFirst + i), &entry));
      ASSERT_EQ(entry.GetOpRunners().primary->ToAlgorithmDesc(), Algorithm(i));
      if (i == 0 && group == &a_) first_of_all = entry;
    }
    // An entry in constant use is not evicted.
    GroupOnThread on(&a_);
    AutotuneEntry<se::dnn::ConvOp> used;
    ASSERT_TRUE(map->Find(Parameters(kFirst), &used));
    ASSERT_EQ(used.GetOpRunners().primary, first_of_all.GetOpRunners().primary);
  }
  EXPECT_LE(ConvRunnersKept(), before + kMostConvRunners);
  // An evicted entry is made again, for the same algorithm.
  GroupOnThread on(&b_);
  AutotuneEntry<se::dnn::ConvOp> again;
  ASSERT_TRUE(map->Find(Parameters(kFirst), &again));
  EXPECT_EQ(again.GetOpRunners().primary->ToAlgorithmDesc(), Algorithm(0));
}

}  // namespace
}  // namespace tensorflow::multistream
