// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do ops on int64 tensors give the results of the same ops on int32
// tensors? A recording computes with int64 where a step computes with int32
// (values_on_device.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_WIDER_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_WIDER_OPS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// With int64 as the op's type attribute T.
enum class Wider {
  kNot,      // all ops that are not listed
  kAsItIs,   // with the same numbers
  kExceeds,  // after a cast to int32: a result may need more than 32 bits
  kDivides,  // if the divisor, its second input, is a constant
};

// The op's kind.
Wider WiderOf(absl::string_view op);

// An error unless the divisor of `node` is a constant by which int32 ops on the
// host always divide.
absl::Status CheckDivisor(const Node& node);

// The int32 numbers of `value`, as int64.
Tensor AsInt64(const Tensor& value);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_WIDER_OPS_H_
