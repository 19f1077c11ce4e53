// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May a step with a batch of b rows run with more rows, if only the first b
// rows of its results are used, and which calls do? CapturedSteps asks for each
// call, if TF_MULTI_STREAM_CAPTURE_BATCHES is set: few recordings then serve
// batches of any size. Pure graph code: no device in it.
//
//   batches 2, 8        a call of 5 rows   -->  the recording for 8 rows
//                       of 2, of 8         -->  as they are
//                       of 9               -->  as it is
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
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

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
  explicit IndependentRows(const Graph& graph) : step_(graph) {}

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
  const StepNodes step_;
};

// The padding of all calls with the same shapes of inputs and variables.
struct Padding {
  // Why these calls are not padded, or empty. If set, the other members are
  // invalid.
  std::string why_not;
  int64_t rows = 0;  // rows of the recording
  std::vector<std::pair<DataType, TensorShape>> variables;
  // The outputs: first the sends, then the results.
  std::vector<BatchResult> results;

  // The padded shape of an input that has `shape` in the call.
  TensorShape Padded(const TensorShape& shape) const;
};

// The paddings of one graph. Thread-safe.
class Paddings {
 public:
  // The most combinations of shapes in the cache, which is cleared when full.
  static constexpr size_t kMostShapes = 1024;

  // `batches` are the batch sizes that may be recorded, ascending.
  Paddings(const Graph& graph, std::vector<int> batches);

  // nullptr if the call's batch is one of `batches`, or larger than all. `key`
  // identifies the shapes of the inputs, without variables.
  std::shared_ptr<const Padding> Of(std::string key, const StepShapes& shapes);

 private:
  std::shared_ptr<const Padding> NewPadding(const StepShapes& shapes) const;

  const IndependentRows rows_;
  const std::vector<int> batches_;
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<const Padding>> known_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_INDEPENDENT_ROWS_H_
