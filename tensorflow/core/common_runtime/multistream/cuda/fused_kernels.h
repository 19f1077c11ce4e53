// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a GPU run a fused program (capture/fuse/fused_program.h)? As a
// kernel in PTX, NVIDIA's assembly language, that the driver compiles. Each
// instruction gives the bits of TensorFlow's own kernel for the op:
// capture/fused_ops_test.py compares them on a GPU.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FUSED_KERNELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FUSED_KERNELS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {

// Whether that was compared for the kernels of this release of TensorFlow.
inline constexpr bool kKernelsAreCompared =
    TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION == 21;

// The program's kernel, for at most MostCallsOf(program) calls.
std::string PtxOf(const FusedProgram& program);

// Compiles the program for the calling thread's CUDA context, once in a
// process. Errors are the driver's. Thread-safe.
absl::Status LoadFused(const FusedProgram& program);

// Launches one kernel for `calls`, of which there are at most
// MostCallsOf(program). The program must be loaded in the calling thread's
// context.
absl::Status LaunchFused(const FusedProgram& program,
                         absl::Span<const FusedCall> calls, CUstream stream);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FUSED_KERNELS_H_
