// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/batched_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

using Calls = absl::Span<BatchedCall* const>;

// The first dimension of all arguments that are not scalars; 0 if the call has
// no rows, or cannot be batched.
int64_t RowsIn(const BatchedCall& call) {
  int64_t rows = -1;
  for (const Tensor& argument : call.arguments) {
    if (!CanBeBatched(argument.dtype())) return 0;
    if (argument.dims() == 0) continue;
    if (rows >= 0 && rows != argument.dim_size(0)) return 0;
    rows = argument.dim_size(0);
  }
  return std::max<int64_t>(rows, 0);
}

// Whether the calls may share a step: types, the shapes of rows, and the values
// of scalars are equal.
bool AreAlike(const BatchedCall& a, const BatchedCall& b) {
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const Tensor& one = a.arguments[i];
    const Tensor& other = b.arguments[i];
    if (one.dtype() != other.dtype() || one.dims() != other.dims()) {
      return false;
    }
    for (int k = 1; k < one.dims(); ++k) {
      if (one.dim_size(k) != other.dim_size(k)) return false;
    }
    if (one.dims() == 0 && one.tensor_data() != other.tensor_data()) {
      return false;
    }
  }
  return true;
}

void CallAlone(const BatchedFunction& function, BatchedCall* call) {
  call->results.clear();
  call->status = function.call(call->arguments, &call->results);
}

// An argument of all calls' rows; the last row is repeated up to `rows`.
Tensor Join(Calls calls, size_t argument, int64_t rows) {
  const Tensor& first = calls[0]->arguments[argument];
  if (first.dims() == 0) return first;
  TensorShape shape = first.shape();
  shape.set_dim(0, rows);
  Tensor joined(first.dtype(), shape);
  const size_t row_bytes = joined.TotalBytes() / rows;
  char* const begin = static_cast<char*>(joined.data());
  char* at = begin;
  for (const BatchedCall* call : calls) {
    const absl::string_view part = call->arguments[argument].tensor_data();
    memcpy(at, part.data(), part.size());
    at += part.size();
  }
  for (char* const end = begin + joined.TotalBytes(); at < end;
       at += row_bytes) {
    memcpy(at, at - row_bytes, row_bytes);
  }
  return joined;
}

// Whether each call may be a part of a step of `rows` rows. The calls are
// alike. Sets which results have rows, which is the same for all calls.
bool MayBeParts(const BatchedFunction& function, Calls calls, int64_t rows,
                std::vector<bool>* in_rows) {
  absl::flat_hash_set<int64_t> asked;
  for (const BatchedCall* call : calls) {
    if (!asked.insert(RowsIn(*call)).second) continue;
    std::vector<TensorShape> shapes;
    for (const Tensor& argument : call->arguments) {
      shapes.push_back(argument.shape());
    }
    absl::StatusOr<std::vector<bool>> found = function.rows_of(shapes, rows);
    if (!found.ok()) return false;
    if (asked.size() > 1 && *found != *in_rows) return false;
    *in_rows = *std::move(found);
  }
  return true;
}

// Returns whether the step has succeeded. Counts the step, if one was made.
bool CallOnce(const BatchedFunction& function, Calls calls, int64_t rows,
              size_t* steps) {
  std::vector<bool> in_rows;
  if (!MayBeParts(function, calls, rows, &in_rows)) return false;
  std::vector<Tensor> arguments, results;
  for (size_t i = 0; i < calls[0]->arguments.size(); ++i) {
    arguments.push_back(Join(calls, i, rows));
  }
  ++*steps;
  if (!function.call(arguments, &results).ok()) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    // A result may have several entries for each row.
    if (in_rows[i] &&
        (results[i].dims() == 0 || results[i].dim_size(0) % rows != 0)) {
      return false;
    }
  }
  int64_t begin = 0;
  for (BatchedCall* call : calls) {
    const int64_t end = begin + RowsIn(*call);
    call->results.clear();
    for (size_t i = 0; i < results.size(); ++i) {
      const int64_t of_row = in_rows[i] ? results[i].dim_size(0) / rows : 0;
      call->results.push_back(
          in_rows[i] ? results[i].Slice(begin * of_row, end * of_row)
                     : results[i]);
    }
    call->status = absl::OkStatus();
    begin = end;
  }
  return true;
}

// Returns how many steps were made.
size_t CallStep(const BatchedFunction& function, const std::vector<int>& sizes,
                Calls calls, int64_t rows) {
  const int64_t size = *std::lower_bound(sizes.begin(), sizes.end(), rows);
  // A call that has one of the sizes already is a step by itself.
  const bool is_step = calls.size() == 1 && rows == size;
  size_t steps = 0;
  if (!is_step && CallOnce(function, calls, size, &steps)) return steps;
  for (BatchedCall* call : calls) CallAlone(function, call);
  return steps + calls.size();
}

}  // namespace

bool CanBeBatched(DataType type) { return DataTypeCanUseMemcpy(type); }

size_t CallTogether(const BatchedFunction& function,
                    const std::vector<int>& sizes,
                    absl::Span<BatchedCall> calls) {
  struct Step {
    std::vector<BatchedCall*> calls;
    int64_t rows = 0;
  };
  const int64_t most = sizes.empty() ? 0 : sizes.back();
  size_t made = 0;
  std::vector<Step> steps;
  for (BatchedCall& call : calls) {
    const int64_t rows = RowsIn(call);
    if (rows == 0 || rows > most) {
      CallAlone(function, &call);
      ++made;
      continue;
    }
    auto step = absl::c_find_if(steps, [&](const Step& other) {
      return other.rows + rows <= most && AreAlike(*other.calls[0], call);
    });
    if (step == steps.end()) step = steps.insert(step, Step());
    step->calls.push_back(&call);
    step->rows += rows;
  }
  for (const Step& step : steps) {
    made += CallStep(function, sizes, step.calls, step.rows);
  }
  return made;
}

}  // namespace tensorflow::multistream
