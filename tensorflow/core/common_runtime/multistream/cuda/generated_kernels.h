// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In which CUDA context is a kernel of TensorFlow's MLIR compiler loaded?
// A loaded kernel belongs to one context, and TensorFlow loads each kernel once
// for all groups of a GPU. Its generated code calls
// _mlir_ciface_tf_launch_kernel; hooks/ calls LaunchKernel instead, so that a
// group in another context than the GPU's first gets kernels loaded there.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_

#include <cstdint>

namespace tensorflow::multistream {

using LaunchKernelFunction = void(void* context, void* module, char* name,
                                  intptr_t grid_x, intptr_t grid_y,
                                  intptr_t grid_z, intptr_t block_x,
                                  intptr_t block_y, intptr_t block_z,
                                  void** params);

// Replaces _mlir_ciface_tf_launch_kernel, which is `stock`.
void LaunchKernel(void* context, void* module, char* name, intptr_t grid_x,
                  intptr_t grid_y, intptr_t grid_z, intptr_t block_x,
                  intptr_t block_y, intptr_t block_z, void** params,
                  LaunchKernelFunction* stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_
