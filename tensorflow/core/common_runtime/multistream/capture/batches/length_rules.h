// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May an op run with longer inputs, such as sentences with more tokens, and
// what does it need so that the added entries change nothing? PaddedLengths
// (padded_lengths.h) asks for each op of a step.
//
//   Tanh(entries) ............. entries
//   MatMul(entries, weights) .. entries
//   Softmax over the entries .. entries, if the added ones are -inf in its
//   input Sum over the entries ...... without entries, if the added ones are 0
//   entries[:, -1] ............ refused
//   Reshape(entries, sizes) ... entries
//   Mul(entries, sizes) ....... refused

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_RULES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_RULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// How one dimension of a tensor depends on the length.
struct LengthDim {
  // It has before * length * after elements. 0, 0: it does not depend on it.
  int64_t before = 0;
  int64_t after = 0;

  bool is_length() const { return before > 0; }
  // Not merged with another dimension.
  bool is_alone() const { return before == 1 && after == 1; }
  int64_t Size(int64_t length) const { return before * length * after; }
  bool operator==(const LengthDim& other) const {
    return before == other.before && after == other.after;
  }
  bool operator!=(const LengthDim& other) const { return !(*this == other); }
};

enum class LengthKind {
  // The same value for every length: it depends on no entry, or on all entries
  // but the added ones.
  kSame,
  // A dimension or more depends on the length. The elements that are there for
  // the step's own length are those of the step's own run.
  kEntries,
  // It depends on the length, but on no entry. May be used only for shapes.
  kSizes,
  // Unknown. No op may use the tensor.
  kUnknown,
};

struct LengthTensor {
  LengthKind kind = LengthKind::kUnknown;
  std::vector<LengthDim> dims;  // of kSame and kEntries
};

// The added entries of an input, along a dimension that is_alone, have to be
// `fill`.
struct LengthMask {
  // kMean: zero, and the output is divided by the share of the step's entries.
  enum class Fill { kZero, kOne, kLowest, kHighest, kMean };
  int input = 0;
  int dim = 0;
  Fill fill = Fill::kZero;

  bool operator==(const LengthMask& other) const {
    return input == other.input && dim == other.dim && fill == other.fill;
  }
};

// An op, with its shapes for `length` entries and for `padded` entries.
struct LengthOp {
  const Node* node = nullptr;
  int64_t length = 0;
  int64_t padded = 0;
  std::vector<LengthTensor> inputs;
  std::vector<TensorShape> input_shapes;  // for `length`
  // Known for the first output and for all outputs that are used.
  std::vector<std::optional<TensorShape>> output_shapes;
  std::vector<std::optional<TensorShape>> padded_shapes;
  // The integers of an input of kind kSame, if known before any step.
  std::function<std::optional<std::vector<int64_t>>(int input)> constant;
};

// Finds what each output is, and the masks that make it so. Returns why the op
// must not run with more entries, such as "mixes entries", or an empty string.
std::string LengthsOfOutputs(const LengthOp& op,
                             std::vector<LengthTensor>* outputs,
                             std::vector<LengthMask>* masks);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_RULES_H_
