// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May a step whose batch has b rows be run as one of more rows, of which only
// the first b mean something? The graph-level executor asks before it gives a
// step to a recording (capturable.h) that was made for a larger batch. Pure
// graph code: no device in it.
//
//   the step's 2 rows, padded to 4        what the step gives for 4 rows
//
//   row 0 |  1  2  3 |                    | 14 |  row 0
//   row 1 |  4  5  6 |  --> the ops -->   | 77 |  row 1: the result for 2 rows
//         |  ?  ?  ? |                    |  ? |
//         |  ?  ?  ? |                    |  ? |
//
// That is right if each row of a result depends on the same row of what the
// step takes alone, and if shapes differ in the number of rows only. Both are
// proved for each op (row_rules.h); what cannot be proved is refused.

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

// The shapes of what a step takes, each in the order of Capturable.
struct StepShapes {
  std::vector<TensorShape> received;
  std::vector<TensorShape> arguments;  // of a variable's handle: not looked at
  std::vector<std::pair<DataType, TensorShape>> variables;  // as they are now
};

// What a step gives for b rows, if it is run with more.
struct BatchResult {
  TensorShape shape;   // for b rows
  TensorShape padded;  // for the rows that it is run with
  // Whether the first elements of the result, as many as `shape` has, are the
  // result for b rows. If not, it does not depend on the batch at all.
  bool is_rows = false;
};

// Of a graph. All methods may be called by several threads at once.
class IndependentRows {
 public:
  // `graph` is one device's part of a step; ClassifyForCapture must have found
  // no obstacle in it. It is copied.
  explicit IndependentRows(const Graph& graph);

  IndependentRows(const IndependentRows&) = delete;
  IndependentRows& operator=(const IndependentRows&) = delete;

  // The rows of a batch: the first dimension of all that has dimensions of what
  // the step receives and of its arguments. An error if that is not one number.
  static absl::StatusOr<int64_t> Batch(const StepShapes& shapes);

  // What a step that takes `shapes` gives if it is run with `rows` rows, more
  // than its batch has: first what it sends, then its results, each in the
  // order of Capturable. FailedPrecondition names the op and the node that
  // forbid it.
  absl::StatusOr<std::vector<BatchResult>> Pad(const StepShapes& shapes,
                                               int64_t rows) const;

 private:
  Graph graph_;
  // Nodes of graph_. The first four in the order of Capturable.
  std::vector<const Node*> received_;
  std::vector<const Node*> arguments_;
  std::vector<const Node*> variables_;
  std::vector<const Node*> results_;  // what sends, then what returns
  std::vector<const Node*> needed_;   // inputs first; without results_
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_
