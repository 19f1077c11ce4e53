// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

constexpr char kOthers = 0x5A;

Tensor Filled(DataType type, const TensorShape& shape, std::mt19937* random) {
  Tensor tensor(type, shape);
  auto* bytes = static_cast<uint8_t*>(tensor.data());
  std::generate_n(bytes, tensor.TotalBytes(),
                  [random] { return static_cast<uint8_t>((*random)()); });
  return tensor;
}

Tensor BlockOf(const InputBlock& block, char fill) {
  Tensor tensor(DT_UINT8, block.shape());
  if (block.bytes() > 0) std::memset(tensor.data(), fill, block.bytes());
  return tensor;
}

// Copies as a launch does, with host memory in place of device memory.
void Copy(const InputBlock& block, const std::vector<Tensor>& values,
          const Tensor& device) {
  Tensor host = BlockOf(block, 0x11);
  block.Fill(values, &host);
  for (const auto& [at, bytes] : block.Spans(values)) {
    ASSERT_GT(bytes, 0);
    ASSERT_LE(at + bytes, block.bytes());
    std::memcpy(static_cast<char*>(device.data()) + at,
                static_cast<char*>(host.data()) + at, bytes);
  }
}

bool SameBytes(const Tensor& a, const Tensor& b, size_t bytes) {
  return bytes == 0 || std::memcmp(a.data(), b.data(), bytes) == 0;
}

TEST(InputBlockTest, OneCopyTakesAll) {
  std::mt19937 random(1);
  const std::vector<Tensor> values = {
      Filled(DT_FLOAT, {3, 5}, &random), Filled(DT_BOOL, {}, &random),
      Filled(DT_INT64, {0, 7}, &random), Filled(DT_DOUBLE, {65}, &random),
      Filled(DT_COMPLEX128, {2}, &random)};
  const InputBlock block(values);
  ASSERT_EQ(block.Spans(values).size(), 1);
  const Tensor device = BlockOf(block, kOthers);
  Copy(block, values, device);
  const std::vector<Tensor> inputs = block.In(device);
  ASSERT_EQ(inputs.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(inputs[i].dtype(), values[i].dtype());
    EXPECT_EQ(inputs[i].shape(), values[i].shape());
    EXPECT_TRUE(inputs[i].IsInitialized());
    EXPECT_TRUE(SameBytes(inputs[i], values[i], values[i].TotalBytes())) << i;
    if (values[i].TotalBytes() == 0) continue;
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(inputs[i].data()) % InputBlock::kAlignment,
        reinterpret_cast<uintptr_t>(device.data()) % InputBlock::kAlignment);
  }
}

TEST(InputBlockTest, InputsKeepTheBlock) {
  std::mt19937 random(2);
  const std::vector<Tensor> values = {Filled(DT_FLOAT, {100}, &random),
                                      Filled(DT_FLOAT, {100}, &random)};
  const InputBlock block(values);
  std::vector<Tensor> inputs;
  {
    const Tensor device = BlockOf(block, kOthers);
    Copy(block, values, device);
    inputs = block.In(device);
  }
  // An op may keep a slice of an input.
  const Tensor slice = inputs[1].Slice(16, 32);
  inputs.clear();
  EXPECT_EQ(slice.NumElements(), 16);
  EXPECT_EQ(slice.flat<float>()(0), values[1].flat<float>()(16));
}

TEST(InputBlockTest, FewerRowsLeaveTheRestAsItWas) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<Tensor> all, values;
    size_t spans = 0;
    bool goes_on = false;
    const int count = random() % 12;
    for (int i = 0; i < count; ++i) {
      const int64_t rows = random() % 4, width = 1 + random() % 100;
      const int64_t fewer = random() % 3 == 0 ? random() % (rows + 1) : rows;
      all.push_back(Filled(DT_UINT8, {rows, width}, &random));
      values.push_back(Filled(DT_UINT8, {fewer, width}, &random));
      if (rows == 0) continue;
      if (!goes_on && fewer > 0) ++spans;
      goes_on = fewer == rows;
    }
    const InputBlock block(all);
    EXPECT_EQ(block.Spans(values).size(), spans);
    const Tensor device = BlockOf(block, kOthers);
    Copy(block, all, device);
    Copy(block, values, device);
    const std::vector<Tensor> inputs = block.In(device);
    for (int i = 0; i < count; ++i) {
      const size_t new_bytes = values[i].TotalBytes();
      const size_t old_bytes = all[i].TotalBytes() - new_bytes;
      ASSERT_TRUE(SameBytes(inputs[i], values[i], new_bytes)) << round;
      if (old_bytes == 0) continue;
      ASSERT_EQ(
          std::memcmp(static_cast<char*>(inputs[i].data()) + new_bytes,
                      static_cast<char*>(all[i].data()) + new_bytes, old_bytes),
          0)
          << round;
    }
  }
}

}  // namespace
}  // namespace tensorflow::multistream
