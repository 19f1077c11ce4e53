// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are calls of one function one step? Their rows, and rows that fill the
// step up to one of a few sizes, are the rows of its arguments:
//
//   call A  2 rows |a a|       step of 4 rows             |a a|  result of A
//   call B  1 row  |b  |  -->  |a a b b| --> function --> |b  |  result of B
//
// Only calls whose rows are shown to be independent share a step
// (DirectFunction::RowsOf). If the step fails, its calls are made one by one:
// each has its own result, or its own error.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_BATCHED_CALLS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_BATCHED_CALLS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

struct BatchedCall {
  std::vector<Tensor> arguments;
  // After CallTogether; parts of a step's results.
  std::vector<Tensor> results;
  absl::Status status;
};

struct BatchedFunction {
  // Calls the function.
  std::function<absl::Status(const std::vector<Tensor>& arguments,
                             std::vector<Tensor>* results)>
      call;
  // Whether a call with arguments of `shapes` may be a part of a step of so
  // many rows; if so, which results have rows. Others are the same for all
  // calls. An error says why not.
  std::function<absl::StatusOr<std::vector<bool>>(
      const std::vector<TensorShape>& shapes, int64_t rows)>
      rows_of;
};

// Whether tensors of this type can be joined.
bool CanBeBatched(DataType type);

// Makes the calls, in as few steps as possible. `sizes` are the rows that a
// step may have, ascending. Returns how many steps were made.
size_t CallTogether(const BatchedFunction& function,
                    const std::vector<int>& sizes,
                    absl::Span<BatchedCall> calls);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_BATCHED_CALLS_H_
