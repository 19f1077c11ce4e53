// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which allocators does each stream group of a CUDA GPU have? For the device,
// TensorFlow's own or a pool that all groups share; for the host, pinned
// memory; and for the visible device one that counts the use of all groups.
// cuda_gpu_factory.h asks once for each group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow::multistream {

// Not thread-safe: the factory's lock guards it.
class CudaAllocators {
 public:
  // Free memory as it was before the groups' allocators took theirs. Kept,
  // because later sessions share these allocators.
  MemoryInfo FirstMemoryOf(int gpu);

  // Call for the first device of `group`. `stock`: the allocator that
  // TensorFlow made for the group. After an error the allocators that the group
  // has still suffice for a device.
  absl::Status Make(const Options& options, GpuGroups* gpu, StreamGroup* group,
                    const GPUOptions& gpu_options, int64_t bytes_of_gpu,
                    Allocator* stock);

  // The visible device's allocator.
  Allocator* visible(StreamGroup* leader) { return visible_[leader]; }

 private:
  absl::StatusOr<StreamAwarePool*> PoolOf(const Options& options,
                                          GpuGroups* gpu,
                                          const GPUOptions& gpu_options,
                                          int64_t bytes);

  std::map<int, MemoryInfo> memory_;
  // Never deleted, as TensorFlow's own allocators are.
  std::map<StreamGroup*, Allocator*> visible_;
  std::map<GpuGroups*, std::unique_ptr<StreamAwarePool>> pools_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_
