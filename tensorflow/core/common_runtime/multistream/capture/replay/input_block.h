// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does all that a step receives from the host reach the device in one copy?
// Each copy takes the host microseconds and a lock of the driver, however small
// it is, and a recommender may receive a hundred features.
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

// Where in a block of memory each of some values is.
class InputBlock {
 public:
  // Each input begins where memory of the device would, which kernels are
  // chosen by.
  static constexpr size_t kAlignment = 256;

  InputBlock() = default;
  // For values with these types and shapes.
  explicit InputBlock(const std::vector<Tensor>& values);

  size_t bytes() const { return bytes_; }
  // Of a tensor of so many bytes.
  TensorShape shape() const { return {static_cast<int64_t>(bytes_)}; }

  // The values in `block`, which they keep.
  std::vector<Tensor> In(const Tensor& block) const;

  // Copies values to a block of the host. None has more bytes than there are
  // for it.
  void Fill(const std::vector<Tensor>& values, Tensor* block) const;

  // What is to be copied from one block to another that has such values, and no
  // more spans than need be. Of a value with fewer bytes, the rest of those
  // that there are for it is none of it.
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
