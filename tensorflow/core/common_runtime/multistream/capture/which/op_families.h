// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which ops may run with padded inputs, and which rules does an op follow? The
// rules for rows (batches/row_rules.h) and for lengths (length_rules.h) share
// the table of ops. An op that is not in the table keeps a step from being
// padded. All ops of the table may be recorded (capturable_ops.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_OP_FAMILIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_OP_FAMILIES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

enum class OpFamily {
  kElementwise,
  kBroadcast,
  kSelect,
  kBiasAdd,
  kEach,  // output i is input i
  kEinsum,
  kBatchMatMul,
  kMatMul,
  kImage,
  kPoolOfInputs,
  kFusedConvolution,
  kBatchNorm,
  kPad,
  kReduce,
  kScan,
  kSoftmax,
  kTopK,
  kNorm,
  kConcat,
  kPack,
  kUnpack,
  kSplit,
  kSplitV,
  kOneHot,
  kMatrices,
  kGather,
  kGatherNd,
  kExpandDims,
  kSqueeze,
  kReshape,
  kCopies,
  kFill,
  kSlice,
  kStridedSlice,
  kTranspose,
  kShapeOf,
  kShapeMath,
  kRange,
  kFixed,  // constants and variables
};

struct OpRule {
  OpFamily family;
  // The role of each of the node's inputs, one letter each:
  //   v  a value: padded, or fixed
  //   w  what all entries are computed with: fixed
  //   p  says how to compute: fixed
  //   s  says which shape to make: sizes, or fixed
  std::string roles;
};

// Whether the op is in the table.
bool HasRule(absl::string_view op);

// nullopt for an op that is not in the table, and for a number of inputs that
// its rule does not have.
std::optional<OpRule> RuleOf(const Node& node);

// The method of a family in a table of rules, or `otherwise`.
template <class Method, size_t n>
Method MethodIn(const std::pair<OpFamily, Method> (&methods)[n],
                OpFamily family, Method otherwise) {
  for (const auto& [of, method] : methods) {
    if (of == family) return method;
  }
  return otherwise;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_OP_FAMILIES_H_
