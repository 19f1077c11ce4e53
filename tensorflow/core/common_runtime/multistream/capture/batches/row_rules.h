// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which results of an op are made row by row, if we know that of what it takes?
// IndependentRows (independent_rows.h) asks for each op of a step, once with
// the shapes that it has for the step's batch, once with those for more rows.
//
//   MatMul(rows, fixed) ....... rows
//   Mean(rows, axis 1) ........ rows
//   Mean(rows, axis 0) ........ refused
//   Reshape(rows, sizes) ...... rows
//   Mul(rows, sizes) .......... refused

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_ROW_RULES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_ROW_RULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// What a tensor depends on.
enum class RowKind {
  // On no row, and not on how many there are: constants, variables, scalars
  // that are fed.
  kFixed,
  // With n elements for a batch of b rows: the elements from i*n/b to (i+1)*n/b
  // depend on row i alone, and on nothing else that is not fixed. The first
  // dimension is a multiple of b.
  kRows,
  // On the number of rows, but on no row. May decide shapes alone.
  kSizes,
  // Nothing is known. Nobody may use it.
  kUnknown,
};

// An op, with the shapes that it has for a batch of so many rows.
struct RowOp {
  const Node* node = nullptr;
  int64_t batch = 0;
  std::vector<TensorShape> input_shapes;
  std::vector<RowKind> input_kinds;
  // That of the first output is known, and those of all that are used.
  std::vector<std::optional<TensorShape>> output_shapes;
  // The integers that an input has, where they are known before any step.
  std::function<std::optional<std::vector<int64_t>>(int input)> constant;
};

// Finds the kind of each output. Empty, or why the op must not be run with more
// rows than there are: "mixes rows".
std::string KindsOfOutputs(const RowOp& op, std::vector<RowKind>* kinds);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_ROW_RULES_H_
