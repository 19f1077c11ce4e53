// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// How much GPU memory does the driver take for an instantiated CUDA graph? CUDA
// has no function for that, so this is an estimate; cuda_recorder.h asks.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/cuda/cuda_status.h"

namespace tensorflow::multistream {

// The result of a CUDA driver call as a Status.
inline absl::Status Checked(const char* call, CUresult result) {
  return stream_executor::cuda::ToStatus(result, absl::StrCat(call, " failed"));
}

// Bytes for a node that launches `kernel`; they grow with its parameters.
// Drivers before CUDA 12.4 cannot tell the parameters: then the bytes of a node
// of another type.
int64_t DriverBytesOfKernel(const CUDA_KERNEL_NODE_PARAMS& kernel);

// Offset and size of each of a kernel's parameters, in bytes. An error if the
// driver cannot tell.
struct ParameterPlace {
  size_t offset;
  size_t size;
};
absl::StatusOr<std::vector<ParameterPlace>> ParametersOf(
    const CUDA_KERNEL_NODE_PARAMS& kernel);

// Bytes for a node of a kernel whose parameters take `bytes`.
int64_t DriverBytesOfParameters(int64_t bytes);

// Bytes for a copy or memset node.
int64_t DriverBytesOfCopy();

// Bytes that an allocation within a graph takes from the pool that a GPU's
// graphs share.
int64_t PoolBytesOfAllocation(int64_t bytes);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_MEMORY_H_
