// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do all values that a step receives from the host reach the device in one
// copy? Each copy takes the host microseconds and a lock of the driver, however
// small it is, and a recommender may receive a hundred features.
//
//   host     value 0 |   | value 1 |     | value 2 |     of one launch
//   device   input 0 |   | input 1 |     | input 2 |     of the recording

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_INPUT_BLOCK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_INPUT_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace multistream {

// The layout of several values in one block of memory.
class InputBlock {
 public:
  // Each input is aligned as device memory is, since alignment decides which
  // kernel an op chooses.
  static constexpr size_t kAlignment = 256;

  InputBlock() = default;
  // For values with these types and shapes.
  explicit InputBlock(const std::vector<Tensor>& values);

  size_t bytes() const { return bytes_; }
  // Shape of a byte tensor that holds the block.
  TensorShape shape() const { return {static_cast<int64_t>(bytes_)}; }

  // Tensors that refer to the values in `block` and keep `block` alive.
  std::vector<Tensor> In(const Tensor& block) const;

  // Copies values into a block on the host. No value may be larger than its
  // place.
  void Fill(const std::vector<Tensor>& values, Tensor* block) const;

  // The fewest spans that must be copied to move `values` from one block to
  // another. If a value is smaller than its place, the rest of the place is
  // left out.
  struct Span {
    size_t at = 0;
    size_t bytes = 0;
  };
  std::vector<Span> Spans(const std::vector<Tensor>& values) const;

 private:
  struct Place {
    size_t at = 0;
    size_t bytes = 0;
    DataType type = DT_INVALID;
    TensorShape shape;
  };
  std::vector<Place> places_;
  size_t bytes_ = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_INPUT_BLOCK_H_
