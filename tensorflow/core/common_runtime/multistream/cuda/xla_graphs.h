// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is compiled code recorded that has CUDA graphs of its own? XLA makes such
// graphs (its command buffers) of parts of a program, and no recording can have
// them. XLA launches the kernels of these parts one by one while a profiler is
// active, so a thread that captures is told that one is. All other threads go
// on to launch XLA's graphs.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_XLA_GRAPHS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_XLA_GRAPHS_H_

#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"

namespace tensorflow::multistream {

// Replaces tsl::profiler::ProfilerLock::HasActiveSession, which is `stock`.
inline bool HasProfiler(absl::FunctionRef<bool()> stock) {
  return GatedCapture::IsOnThisThread() || stock();
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_XLA_GRAPHS_H_
