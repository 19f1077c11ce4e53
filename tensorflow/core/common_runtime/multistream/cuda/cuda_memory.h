// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does the memory of a GPU's stream groups come from, on the device and
// on the host, and how much is there? cuda_allocators.h divides it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_MEMORY_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

// Zeros if the GPU cannot be asked.
MemoryInfo CudaMemoryInfo(int gpu);

// The region of /physical_device:GPU:`gpu` that holds the `bytes` at `address`.
std::pair<const void*, size_t> CudaRegionOf(int gpu, const void* address,
                                            size_t bytes);

// Takes memory from the GPU; with `unified`, unified memory that the host backs
// too, for a per_process_gpu_memory_fraction above 1.
absl::StatusOr<std::unique_ptr<SubAllocator>> NewCudaMemory(int gpu,
                                                            bool unified);

// Pinned host memory for the copies of one group, limited by
// TF_GPU_HOST_MEM_LIMIT_IN_MB as TensorFlow's own pinned allocator is. Call
// while the group's executor is chosen (stream_executors.h).
absl::StatusOr<std::unique_ptr<Allocator>> NewPinnedMemory(
    const StreamGroup& group);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_MEMORY_H_
