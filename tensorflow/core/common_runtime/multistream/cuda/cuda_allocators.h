// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which allocators does each stream group of a CUDA GPU have: TensorFlow's own
// or a pool of all groups, pinned host memory, and the visible device's, which
// counts all of them? cuda_gpu_factory.h asks for each group's once.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace multistream {

// The memory of the visible device, to those who ask for its use: all groups'.
class LeaderAllocator : public GroupAllocator {
 public:
  template <typename Memory>
  LeaderAllocator(Allocator* wrapped, GpuGroups* gpu, Memory memory)
      : GroupAllocator(wrapped, gpu->leader(), std::move(memory)), gpu_(gpu) {}

  std::optional<AllocatorStats> GetStats() override;
  bool ClearStats() override;

 private:
  GpuGroups* const gpu_;
};

// Not thread-safe: the factory's lock guards it.
class CudaAllocators {
 public:
  // Free memory as it was before the groups' allocators took it: later
  // sessions share these allocators.
  MemoryInfo FirstMemoryOf(int gpu);

  // For the first device of `group`. `stock`: what TensorFlow made for it. On
  // an error, what the group has still does for a device.
  absl::Status Make(const Options& options, GpuGroups* gpu, StreamGroup* group,
                    const GPUOptions& gpu_options, int64_t bytes_of_gpu,
                    Allocator* stock);

  // The visible device's.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_ALLOCATORS_H_
