// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/padded_inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

// Other work may wait for the thread, so a failed allocation must not block.
Tensor NewTensor(Allocator* allocator, DataType type,
                 const TensorShape& shape) {
  const AllocationAttributes no_retry(/*retry_on_failure=*/false,
                                      /*allocation_will_be_logged=*/false,
                                      /*freed_by_func=*/nullptr);
  return Tensor(allocator, type, shape, no_retry);
}

}  // namespace

absl::Status CopyOnHost(const void* from, void* to, size_t bytes) {
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status PadRows(int64_t rows, Allocator* allocator, CopyBytes copy,
                     Tensor* tensor) {
  if (tensor->dims() == 0 || rows == 0) return absl::OkStatus();
  TensorShape shape = tensor->shape();
  shape.set_dim(0, rows);
  Tensor padded = NewTensor(allocator, tensor->dtype(), shape);
  if (!padded.IsInitialized()) {
    return absl::ResourceExhaustedError("there is no memory for more rows");
  }
  char* const begin = static_cast<char*>(padded.data());
  const size_t all = padded.TotalBytes();
  size_t done = tensor->TotalBytes();
  TF_RETURN_IF_ERROR(copy(tensor->data(), begin, done));
  while (done < all) {
    const size_t more = std::min(done, all - done);
    TF_RETURN_IF_ERROR(copy(begin, begin + done, more));
    done += more;
  }
  *tensor = std::move(padded);
  return absl::OkStatus();
}

absl::Status PadEntries(int64_t length, Allocator* allocator, CopyBytes copy,
                        Tensor* tensor) {
  TensorShape shape = tensor->shape();
  const int64_t rows = shape.dim_size(0);
  shape.set_dim(1, length);
  Tensor padded = NewTensor(allocator, tensor->dtype(), shape);
  if (!padded.IsInitialized()) {
    return absl::ResourceExhaustedError("there is no memory for more entries");
  }
  if (padded.NumElements() == 0) {
    *tensor = std::move(padded);
    return absl::OkStatus();
  }
  const size_t all = padded.TotalBytes() / rows, entry = all / length;
  const size_t given = tensor->TotalBytes() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const char* from = static_cast<const char*>(tensor->data()) + row * given;
    char* to = static_cast<char*>(padded.data()) + row * all;
    TF_RETURN_IF_ERROR(copy(from, to, given));
    size_t done = given;
    while (done < all) {
      // Whole entries, of which the last is the last of the row.
      const size_t more =
          done == given ? entry : std::min(done - given, all - done);
      TF_RETURN_IF_ERROR(copy(to + done - more, to + done, more));
      done += more;
    }
  }
  *tensor = std::move(padded);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
