// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/input_block.h"

#include <cstring>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

// A part of a block, which holds a reference to the block.
class Part : public TensorBuffer {
 public:
  Part(const Tensor& block, size_t at, size_t bytes)
      : TensorBuffer(static_cast<char*>(block.data()) + at),
        block_(block),
        bytes_(bytes) {}

  size_t size() const override { return bytes_; }
  TensorBuffer* root_buffer() override {
    return DMAHelper::buffer(&block_)->root_buffer();
  }
  void FillAllocationDescription(AllocationDescription*) const override {}

 private:
  Tensor block_;
  const size_t bytes_;
};

}  // namespace

InputBlock::InputBlock(const std::vector<Tensor>& values) {
  for (const Tensor& it : values) {
    bytes_ = (bytes_ + kAlignment - 1) / kAlignment * kAlignment;
    places_.push_back({bytes_, it.TotalBytes(), it.dtype(), it.shape()});
    bytes_ += it.TotalBytes();
  }
}

std::vector<Tensor> InputBlock::In(const Tensor& block) const {
  DCHECK_GE(block.TotalBytes(), bytes_);
  std::vector<Tensor> values;
  for (const Place& place : places_) {
    if (place.bytes == 0) {
      values.emplace_back(place.type, place.shape);
      continue;
    }
    auto* part = new Part(block, place.at, place.bytes);
    values.emplace_back(place.type, place.shape, part);
    part->Unref();  // the tensor has its own reference
  }
  return values;
}

void InputBlock::Fill(const std::vector<Tensor>& values, Tensor* block) const {
  char* begin = static_cast<char*>(block->data());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t bytes = values[i].TotalBytes();
    DCHECK_LE(bytes, places_[i].bytes);
    if (bytes > 0) std::memcpy(begin + places_[i].at, values[i].data(), bytes);
  }
}

std::vector<InputBlock::Span> InputBlock::Spans(
    const std::vector<Tensor>& values) const {
  std::vector<Span> spans;
  bool goes_on = false;  // the last span ends where the next value begins
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& [at, most, type, shape] = places_[i];
    const size_t bytes = values[i].TotalBytes();
    if (most == 0) continue;
    if (goes_on) {
      spans.back().bytes = at + bytes - spans.back().at;
    } else if (bytes > 0) {
      spans.push_back({at, bytes});
    }
    goes_on = bytes == most;
  }
  return spans;
}

}  // namespace multistream
}  // namespace tensorflow
