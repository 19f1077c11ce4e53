// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May a step with a batch of b rows run with more rows, if only the first b
// rows of its results are used? Paddings (paddings.h) asks, so that few
// recordings serve batches of any size. Pure graph code: no device in it.
//
//   the step's 2 rows, padded to 4        what the step gives for 4 rows
//
//   row 0 |  1  2  3 |                    | 14 |  row 0
//   row 1 |  4  5  6 |  --> the ops -->   | 77 |  row 1: the result for 2 rows
//         |  ?  ?  ? |                    |  ? |
//         |  ?  ?  ? |                    |  ? |
//
// Padding is correct if each row of a result depends only on the same row of
// the inputs, and if shapes differ only in the number of rows. Both are proved
// for each op (row_rules.h); a step without such a proof is refused.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// The proofs for one graph. Thread-safe.
class IndependentRows {
 public:
  // `graph` is one device's part of a step; ClassifyForCapture must have found
  // no obstacle in it. The constructor copies `graph`.
  explicit IndependentRows(const Graph& graph) : step_(graph) {}

  IndependentRows(const IndependentRows&) = delete;
  IndependentRows& operator=(const IndependentRows&) = delete;

  // The number of rows: the first dimension of all received values and
  // arguments that are not scalars. An error if their first dimensions differ.
  static absl::StatusOr<int64_t> Batch(const StepShapes& shapes);

  // The outputs of a step with inputs of `shapes` that is padded to `rows`
  // rows: the sends, the results, the checks, each in the order of Capturable.
  // FailedPrecondition names the op and the node that forbid padding.
  absl::StatusOr<std::vector<SizedResult>> Pad(const StepShapes& shapes,
                                               int64_t rows) const;

 private:
  const StepNodes step_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_
