// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The part of the rules for lengths (length_rules.h) for ops that move entries
// and compute nothing with them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_MOVES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_MOVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/length_rules.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

// What the rules ask of an op. A rule is a method: it sets `dims_`, the
// dimensions of all outputs, or returns why the op is refused.
class LengthRule {
 protected:
  // Reasons for a refusal.
  static constexpr char kMixes[] = "mixes entries";
  static constexpr char kAlong[] = "is along the length";
  static constexpr char kUnlike[] = "takes entries beside what has none there";
  static constexpr char kSomeEntries[] = "takes some of the entries only";
  static constexpr char kSizeAsValue[] = "takes the length for a value";
  static constexpr char kUnknownAxis[] = "has an axis that is not a constant";
  static constexpr char kUnknownBounds[] = "has bounds that are not constants";

  using Dims = std::vector<LengthDim>;
  using Fill = LengthMask::Fill;

  LengthRule(const LengthOp& op, std::vector<LengthMask>* masks)
      : op_(op), masks_(*masks) {}

  // Queries for the rules.
  int Inputs() const { return op_.node->num_inputs(); }
  LengthKind Kind(int i) const { return op_.inputs[i].kind; }
  bool Has(LengthKind kind) const {
    return absl::c_any_of(
        op_.inputs, [kind](const LengthTensor& it) { return it.kind == kind; });
  }
  bool IsEntries(int i) const { return Kind(i) == LengthKind::kEntries; }
  int Rank(int i) const { return op_.input_shapes[i].dims(); }
  int64_t Size(int i, int dim) const {
    return op_.input_shapes[i].dim_size(dim);
  }
  // The dimensions of an input; sizes have none that depend on the length.
  Dims Of(int i) const {
    return IsEntries(i) ? op_.inputs[i].dims : Dims(Rank(i));
  }
  int OutputRank() const { return op_.output_shapes[0]->dims(); }
  // Sizes of the first output, for both lengths.
  int64_t Short(int dim) const { return op_.output_shapes[0]->dim_size(dim); }
  int64_t Long(int dim) const { return op_.padded_shapes[0]->dim_size(dim); }
  template <typename T>
  T Attr(const char* name, T otherwise) const {
    TryGetNodeAttr(op_.node->attrs(), name, &otherwise);
    return otherwise;
  }
  std::optional<std::vector<int64_t>> Constant(int i) const {
    if (Kind(i) != LengthKind::kSame) return std::nullopt;
    return op_.constant(i);
  }
  // The axis that a scalar input or an attribute names, or -1.
  static int Normalized(int64_t axis, int rank) {
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? -1 : static_cast<int>(axis);
  }
  int AxisOfInput(int input, int rank) const {
    const auto axis = Constant(input);
    return !axis || axis->size() != 1 ? -1 : Normalized(axis->front(), rank);
  }

  // Asks that the added entries are `fill`.
  std::string Mask(int input, int dim, Fill fill) {
    if (!Of(input)[dim].is_alone()) return kMixes;
    masks_.push_back({input, dim, fill});
    return "";
  }

  // A dimension all of whose elements are equal.
  LengthDim Repeated(int dim) const {
    const int64_t entries = Short(dim) / op_.length;
    return Short(dim) == Long(dim) || entries == 0 ? LengthDim{}
                                                   : LengthDim{entries, 1};
  }
  // Whether a dimension of the output has an element for each entry.
  bool IsLength(int dim) const {
    return Short(dim) == op_.length && Long(dim) == op_.padded;
  }

  const LengthOp& op_;
  std::vector<LengthMask>& masks_;
  Dims dims_;
};

class LengthMoves : public LengthRule {
 protected:
  using LengthRule::LengthRule;

  std::string Concat();
  std::string Pack();
  std::string Unpack();
  std::string Split();
  std::string SplitV();
  std::string OneHot();
  std::string Pad();
  std::string Gather();
  std::string GatherNd();
  std::string ExpandDims();
  std::string Squeeze();
  std::string Transpose();
  std::string Reshape();
  std::string Copies();
  std::string Filled();
  std::string Range();
  std::string Slice();
  std::string StridedSlice();

 private:
  std::string Alike(int first, int last, int axis);
  std::string Insert(int at);
  std::string SplitOf(int value, int axis_input);
  std::string Part(int from, bool whole);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_LENGTH_MOVES_H_
