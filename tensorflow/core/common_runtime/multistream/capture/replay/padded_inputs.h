// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Copies of a step's inputs with the sizes of a padded recording (paddings.h).
// What is added are copies of real rows and entries, which the step can surely
// process.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_PADDED_INPUTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_PADDED_INPUTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

using CopyBytes =
    absl::FunctionRef<absl::Status(const void* from, void* to, size_t bytes)>;

absl::Status CopyOnHost(const void* from, void* to, size_t bytes);

// Repeats the rows of a tensor that is no scalar up to `rows`; 0: as they are.
absl::Status PadRows(int64_t rows, Allocator* allocator, CopyBytes copy,
                     Tensor* tensor);

// Repeats the last entry of each row, in the second dimension, up to `length`.
absl::Status PadEntries(int64_t length, Allocator* allocator, CopyBytes copy,
                        Tensor* tensor);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_PADDED_INPUTS_H_
