// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a recorded op compute, if each element of its result comes from one
// element of each operand? Such ops can become part of a larger kernel:
// capture/fuse/fused_ops.h.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tensorflow::multistream {

// Of 32-bit floating-point numbers.
enum class Arithmetic {
  kAdd,  // of two operands or more, from the first one on
  kSubtract,
  kMultiply,
  kDivide,
  kNegate,
  kSquare,
  kSquareRoot,
  kSquaredDifference,
  kCopy,
  kGreaterEqual,  // gives bools
  kSelect         // the first operand, of bools, chooses between the others
};
inline bool GivesBools(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::kGreaterEqual;
}
inline bool TakesBools(Arithmetic arithmetic, size_t operand) {
  return arithmetic == Arithmetic::kSelect && operand == 0;
}
inline size_t BytesOfElement(bool is_bool) {
  return is_bool ? sizeof(bool) : sizeof(float);
}

// How an operand is broadcast, as [a, 1, c, 1] to [a, b, c, d]: `inner` is d,
// `kept` is c, `times` is b. Without a before it, b is any number, and without
// b before it, c is: batches of all sizes are broadcast in the same way.
struct Broadcast {
  static constexpr uint32_t kAny = 0;
  uint32_t inner = 1;
  uint32_t kept = kAny;
  uint32_t times = kAny;
  int64_t elements = 0;  // of the operand

  // The operand's element for element `i` of the result.
  uint64_t Index(uint64_t i) const {
    const uint64_t row = i / inner;
    if (kept == kAny) return row;
    if (times == kAny) return row % kept;
    return row / (uint64_t{kept} * times) * kept + row % kept;
  }
};

struct ElementwiseOp {
  struct Operand {
    uint64_t address;
    bool is_scalar = false;  // one element, used for each one of the result
    std::optional<Broadcast> broadcast = std::nullopt;
    // Has an element for each one of the result.
    bool IsWhole() const { return !is_scalar && !broadcast; }
  };
  Arithmetic arithmetic;
  int64_t elements = 0;
  std::vector<Operand> operands;
  uint64_t result = 0;  // where the result goes: may be an operand's address
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_ELEMENTWISE_H_
