// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/batched_calls.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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
    if (!DataTypeCanUseMemcpy(argument.dtype())) return 0;
    if (argument.dims() == 0) continue;
    if (rows >= 0 && rows != argument.dim_size(0)) return 0;
    rows = argument.dim_size(0);
  }
  return std::max<int64_t>(rows, 0);
}

// Equal for calls that may share a step: types, the shapes of rows, and the
// values of scalars.
std::string KeyOf(const BatchedCall& call) {
  std::string key;
  for (const Tensor& argument : call.arguments) {
    absl::StrAppend(&key, argument.dtype(), " ", argument.dims(), "[");
    for (int i = 1; i < argument.dims(); ++i) {
      absl::StrAppend(&key, argument.dim_size(i), ",");
    }
    if (argument.dims() == 0) absl::StrAppend(&key, argument.tensor_data());
    key += ']';
  }
  return key;
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

// Whether each call may be a part of a step of `rows` rows. Sets which results
// have rows, which is the same for all calls.
bool MayBeParts(const BatchedFunction& function, Calls calls, int64_t rows,
                std::vector<bool>* in_rows) {
  for (const BatchedCall* call : calls) {
    std::vector<TensorShape> shapes;
    for (const Tensor& argument : call->arguments) {
      shapes.push_back(argument.shape());
    }
    absl::StatusOr<std::vector<bool>> found = function.rows_of(shapes, rows);
    if (!found.ok()) return false;
    if (call != calls[0] && *found != *in_rows) return false;
    *in_rows = *std::move(found);
  }
  return true;
}

// Returns whether the step has succeeded.
bool CallOnce(const BatchedFunction& function, Calls calls, int64_t rows) {
  std::vector<bool> in_rows;
  if (!MayBeParts(function, calls, rows, &in_rows)) return false;
  std::vector<Tensor> arguments, results;
  for (size_t i = 0; i < calls[0]->arguments.size(); ++i) {
    arguments.push_back(Join(calls, i, rows));
  }
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

void CallStep(const BatchedFunction& function, const std::vector<int>& sizes,
              Calls calls, int64_t rows) {
  const int64_t size = *std::lower_bound(sizes.begin(), sizes.end(), rows);
  // A call that has one of the sizes already is a step by itself.
  if (calls.size() == 1 && rows == size) return CallAlone(function, calls[0]);
  if (CallOnce(function, calls, size)) return;
  for (BatchedCall* call : calls) CallAlone(function, call);
}

}  // namespace

void CallTogether(const BatchedFunction& function,
                  const std::vector<int>& sizes, Calls calls) {
  const int64_t most = sizes.empty() ? 0 : sizes.back();
  std::vector<std::pair<std::string, BatchedCall*>> alike;
  for (BatchedCall* call : calls) {
    const int64_t rows = RowsIn(*call);
    if (rows == 0 || rows > most) {
      CallAlone(function, call);
    } else {
      alike.emplace_back(KeyOf(*call), call);
    }
  }
  // Calls of other shapes keep their order.
  std::stable_sort(
      alike.begin(), alike.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BatchedCall*> step;
  int64_t rows = 0;
  for (size_t i = 0; i < alike.size(); ++i) {
    const int64_t more = RowsIn(*alike[i].second);
    const bool fits = !step.empty() && alike[i].first == alike[i - 1].first &&
                      rows + more <= most;
    if (!step.empty() && !fits) {
      CallStep(function, sizes, absl::MakeSpan(step), rows);
      step.clear();
      rows = 0;
    }
    step.push_back(alike[i].second);
    rows += more;
  }
  if (!step.empty()) CallStep(function, sizes, absl::MakeSpan(step), rows);
}

}  // namespace tensorflow::multistream
