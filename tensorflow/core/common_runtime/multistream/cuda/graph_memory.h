// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// How much of the GPU's memory does the driver take for a CUDA graph that can
// be launched? No function of CUDA tells; cuda_recorder.h asks here.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {

// Bytes for a node that launches `kernel`: more, the more parameters it has.
// Those of any other node if the driver cannot tell: before CUDA 12.4.
int64_t DriverBytesOfKernel(const CUDA_KERNEL_NODE_PARAMS& kernel);

// Where each of a kernel's parameters is among all of them, in bytes. An error:
// the driver cannot tell.
struct ParameterPlace {
  size_t offset;
  size_t size;
};
absl::StatusOr<std::vector<ParameterPlace>> ParametersOf(
    const CUDA_KERNEL_NODE_PARAMS& kernel);

// Bytes for a kernel with so many bytes of parameters.
int64_t DriverBytesOfParameters(int64_t bytes);

// Bytes for a copy, or for memory that is set.
int64_t DriverBytesOfCopy();

// Bytes for memory that a graph allocates and frees: of the pool that a GPU's
// graphs have.
int64_t PoolBytesOfAllocation(int64_t bytes);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_
