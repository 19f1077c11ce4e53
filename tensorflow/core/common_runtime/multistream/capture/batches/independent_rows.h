// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May a step with a batch of b rows run with more rows, if only the first b
// rows of its results are used? The graph-level executor asks before it replays
// a step with a recording made for a larger batch. Pure graph code: no device
// in it.
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
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// The shapes of a step's inputs, each list in the order of Capturable.
struct StepShapes {
  std::vector<TensorShape> received;
  std::vector<TensorShape> arguments;  // a variable handle's is ignored
  std::vector<std::pair<DataType, TensorShape>> variables;  // as they are now
};

// The shape of one output of a padded step, whose batch has b rows.
struct BatchResult {
  TensorShape shape;   // for b rows
  TensorShape padded;  // for all rows, with the padding
  // True: the leading elements, as many as `shape` has, are the result for b
  // rows. False: the result does not depend on the batch at all.
  bool is_rows = false;
};

// The proofs for one graph. Thread-safe.
class IndependentRows {
 public:
  // `graph` is one device's part of a step; ClassifyForCapture must have found
  // no obstacle in it. The constructor copies `graph`.
  explicit IndependentRows(const Graph& graph);

  IndependentRows(const IndependentRows&) = delete;
  IndependentRows& operator=(const IndependentRows&) = delete;

  // The number of rows: the first dimension of all received values and
  // arguments that are not scalars. An error if their first dimensions differ.
  static absl::StatusOr<int64_t> Batch(const StepShapes& shapes);

  // The outputs of a step with inputs of `shapes` that is padded to `rows`
  // rows: first the sends, then the results, each in the order of Capturable.
  // FailedPrecondition names the op and the node that forbid padding.
  absl::StatusOr<std::vector<BatchResult>> Pad(const StepShapes& shapes,
                                               int64_t rows) const;

 private:
  Graph graph_;
  // Nodes of graph_. The first four lists are in the order of Capturable.
  std::vector<const Node*> received_;
  std::vector<const Node*> arguments_;
  std::vector<const Node*> variables_;
  std::vector<const Node*> results_;  // sends, then returns
  std::vector<const Node*> needed_;   // inputs first; without results_
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_
