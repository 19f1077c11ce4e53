// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which outputs of an op are computed row by row, if its inputs are known to
// be? IndependentRows (independent_rows.h) asks twice for each op of a step:
// with the shapes for the step's batch, and with the shapes for more rows.
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

namespace tensorflow::multistream {

// Which part of the batch a tensor depends on.
enum class RowKind {
  // On no row, nor on the number of rows: constants, variables, scalars that
  // are fed.
  kFixed,
  // With n elements for a batch of b rows: the elements from i*n/b to (i+1)*n/b
  // depend only on row i and on fixed tensors. The first dimension is a
  // multiple of b.
  kRows,
  // On the number of rows, but on no row. May be used only for shapes.
  kSizes,
  // Unknown. No op may use the tensor.
  kUnknown,
};

// An op, with its shapes for a batch of `batch` rows.
struct RowOp {
  const Node* node = nullptr;
  int64_t batch = 0;
  std::vector<TensorShape> input_shapes;
  std::vector<RowKind> input_kinds;
  // Known for the first output and for all outputs that are used.
  std::vector<std::optional<TensorShape>> output_shapes;
  // The integers of an input, if they are known before any step.
  std::function<std::optional<std::vector<int64_t>>(int input)> constant;
};

// Finds the kind of each output. Returns why the op must not run with more
// rows, such as "mixes rows", or an empty string.
std::string KindsOfOutputs(const RowOp& op, std::vector<RowKind>* kinds);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_ROW_RULES_H_
