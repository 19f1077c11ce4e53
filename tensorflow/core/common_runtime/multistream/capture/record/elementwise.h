// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a recorded op compute, if each element of its result comes from
// the same element of its operands? Such ops can become part of a larger
// kernel: capture/fuse/fused_ops.h.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_

#include <cstdint>
#include <vector>

namespace tensorflow::multistream {

// Of 32-bit floating-point numbers.
enum class Arithmetic {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kSquare,
  kSquareRoot
};

struct ElementwiseOp {
  struct Operand {
    uint64_t address;
    bool is_scalar;  // one element, used for each element of the result
  };
  Arithmetic arithmetic;
  int64_t elements = 0;
  std::vector<Operand> operands;
  uint64_t result = 0;  // where the result goes: may be an operand's address
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_
