// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many groups does each GPU of a session get, and how much memory each
// group? Computed from the ConfigProto and our options, without devices.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GROUP_SIZES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GROUP_SIZES_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow::multistream {

struct MemoryInfo {
  int64_t free_bytes;
  int64_t total_bytes;
  // Memory that TensorFlow leaves to the driver and the CUDA libraries.
  int64_t reserved_bytes;
  // In addition for each group after the first: handles and workspaces.
  int64_t reserved_per_group_bytes = 0;
  // In addition for each CUDA context after the first.
  int64_t reserved_per_context_bytes = 0;
};

// One visible GPU.
struct GpuSizes {
  int gpu;  // as the platform numbers it
  int groups;
  int64_t group_bytes;             // memory limit of each group
  std::vector<int> contexts = {};  // each group's CUDA context, by number
};

// FailedPrecondition: `options` ask for groups, and there is no GPU.
absl::Status NoGpuError(const Options& options);

// False if the configuration asks for no GPU devices.
bool WantsGpus(const ConfigProto& config);

// `physical`: the platform's numbers of the usable GPUs. `memory`: returns the
// memory of one of them. Honours visible_device_list, device_count,
// per_process_gpu_memory_fraction, memory limits of single logical devices and
// TF_DEVICE_MIN_SYS_MEMORY_IN_MB as TensorFlow documents them.
//
// Errors: InvalidArgument if the group counts do not fit the GPUs, if a GPU is
// listed that is not there, or if the config splits a GPU into several logical
// devices; FailedPrecondition if there is no GPU and the config does not say
// that it wants none.
absl::StatusOr<std::vector<GpuSizes>> PlanGroupSizes(
    const Options& options, const ConfigProto& config,
    const std::vector<int>& physical,
    const std::function<MemoryInfo(int gpu)>& memory);

// As TensorFlow reads allow_growth and TF_FORCE_GPU_ALLOW_GROWTH.
bool AllowGrowth(const GPUOptions& options);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GROUP_SIZES_H_
