// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The result of a CUDA driver call as a Status.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_CALL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_CALL_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/cuda/cuda_status.h"

namespace tensorflow {
namespace multistream {

inline absl::Status Checked(const char* call, CUresult result) {
  return stream_executor::cuda::ToStatus(result, absl::StrCat(call, " failed"));
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_DRIVER_CALL_H_
