// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The proofs that calls of a direct function may share a step: from the
// function's arguments and results to the inputs and outputs of the GPU's part,
// whose rows are proved to be independent (independent_rows.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_ROW_PROOFS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_ROW_PROOFS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"
#include "tensorflow/core/common_runtime/multistream/serving/direct_function.h"

namespace tensorflow::multistream {

class DirectFunction::RowProofs {
 public:
  // `function` must live longer. An error says why no calls share a step.
  static absl::StatusOr<std::unique_ptr<RowProofs>> Make(
      const DirectFunction& function);

  absl::StatusOr<std::vector<bool>> RowsOf(
      const std::vector<TensorShape>& arguments, int64_t rows);

 private:
  RowProofs(const DirectFunction& function, const Graph& graph)
      : function_(function), nodes_(graph), rows_(graph) {}

  // Looks at what the nodes take and give.
  absl::Status Look();
  absl::StatusOr<std::vector<bool>> Prove(const StepShapes& shapes,
                                          int64_t rows) const;
  absl::StatusOr<StepShapes> ShapesOf(
      const std::vector<TensorShape>& arguments) const;

  // What a received value or an argument of the part is.
  struct Input {
    int argument = -1;  // of the function's call; -1: a captured scalar
  };
  absl::StatusOr<Input> InputOf(const Source& source) const;

  const DirectFunction& function_;
  const StepNodes nodes_;
  const IndependentRows rows_;
  std::vector<Input> received_;   // by StepNodes::received
  std::vector<Input> arguments_;  // by StepNodes::arguments
  std::vector<int> variables_;    // by StepNodes::variables: captures
  std::vector<int> outputs_;      // by result: StepNodes::results, or -1
  absl::Mutex mu_;
  absl::flat_hash_map<std::string, absl::StatusOr<std::vector<bool>>> known_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_ROW_PROOFS_H_
