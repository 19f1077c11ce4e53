// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

absl::StatusOr<std::vector<int>> VisibleGpus(const ConfigProto& config,
                                             const std::vector<int>& physical) {
  std::vector<int> visible;
  const std::string& list = config.gpu_options().visible_device_list();
  if (list.empty()) {
    visible = physical;
  } else {
    for (absl::string_view part : absl::StrSplit(list, ',')) {
      int gpu;
      if (!absl::SimpleAtoi(part, &gpu) ||
          std::find(physical.begin(), physical.end(), gpu) == physical.end() ||
          std::find(visible.begin(), visible.end(), gpu) != visible.end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("visible_device_list=\"", list,
                         "\" is not valid: it takes "
                         "different numbers out of ",
                         absl::StrJoin(physical, ", ")));
      }
      visible.push_back(gpu);
    }
  }
  const auto count = config.device_count().find("GPU");
  if (count != config.device_count().end() && count->second >= 0 &&
      count->second < static_cast<int>(visible.size())) {
    visible.resize(count->second);
  }
  return visible;
}

// The memory that TensorFlow would give one GPU, in bytes.
int64_t MemoryOfGpu(const GPUOptions& options, const MemoryInfo& memory,
                    int groups, int contexts) {
  const double fraction = options.per_process_gpu_memory_fraction();
  int64_t bytes = fraction > 0
                      ? static_cast<int64_t>(memory.total_bytes * fraction)
                      : memory.free_bytes - memory.reserved_bytes -
                            (groups - 1) * memory.reserved_per_group_bytes -
                            (contexts - 1) * memory.reserved_per_context_bytes;
  const auto reserve = [&](int64_t megabytes) {
    if (megabytes * kMegabyte <= memory.free_bytes) {
      bytes = memory.free_bytes - megabytes * kMegabyte;
    }
  };
  const int64_t asked =
      NumberIn(options.experimental(), "gpu_system_memory_size_in_mb");
  if (asked > 0) reserve(asked);
  if (const char* set = std::getenv("TF_DEVICE_MIN_SYS_MEMORY_IN_MB")) {
    int64_t megabytes;
    if (absl::SimpleAtoi(set, &megabytes) && megabytes >= 0) reserve(megabytes);
  }
  return bytes;
}

}  // namespace

absl::Status NoGpuError(const Options& options) {
  return absl::FailedPreconditionError(absl::StrCat(
      kGroupCountVariable, "=", absl::StrJoin(options.group_counts, ","),
      " asks for stream groups, but TensorFlow finds no usable GPU here. "
      "Install the GPU's driver and CUDA libraries (pip install "
      "'tensorflow[and-cuda]'), unset the variable, or set ",
      kEmulatedGpusVariable, "=1 to try it on an emulated GPU."));
}

bool WantsGpus(const ConfigProto& config) {
  const auto count = config.device_count().find("GPU");
  return count == config.device_count().end() || count->second != 0;
}

absl::StatusOr<std::vector<GpuSizes>> PlanGroupSizes(
    const Options& options, const ConfigProto& config,
    const std::vector<int>& physical,
    const std::function<MemoryInfo(int gpu)>& memory) {
  if (!WantsGpus(config)) return std::vector<GpuSizes>();
  if (physical.empty()) return NoGpuError(options);
  TF_ASSIGN_OR_RETURN(const std::vector<int> visible,
                      VisibleGpus(config, physical));
  TF_RETURN_IF_ERROR(options.CheckGroupCounts(
      static_cast<int>(visible.size()), static_cast<int>(physical.size())));

  const GPUOptions& gpu_options = config.gpu_options();
  const auto& logical = gpu_options.experimental().virtual_devices();
  const int per_gpu =
      NumberIn(gpu_options.experimental(), "num_virtual_devices_per_gpu");
  if (per_gpu > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_virtual_devices_per_gpu=", per_gpu,
                     " cannot be combined with ", kGroupCountVariable,
                     ", which splits the GPU itself: unset one of them."));
  }
  std::vector<GpuSizes> sizes;
  for (int k = 0; k < static_cast<int>(visible.size()); ++k) {
    const int gpu = visible[k];
    const int groups = options.GroupCount(k);
    TF_RETURN_IF_ERROR(options.CheckPriorities(groups));
    TF_RETURN_IF_ERROR(options.CheckSmShares(groups));
    std::vector<int> contexts;
    for (int i = 0; i < groups; ++i) contexts.push_back(options.Context(k, i));
    int64_t bytes;
    if (k < logical.size() && logical.Get(k).memory_limit_mb_size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The configuration splits GPU ", gpu, " into ",
          logical.Get(k).memory_limit_mb_size(),
          " logical devices, which cannot be combined with ",
          kGroupCountVariable, "=", absl::StrJoin(options.group_counts, ","),
          ": give the GPU one logical device, or unset the variable."));
    }
    if (k < logical.size() && logical.Get(k).memory_limit_mb_size() == 1) {
      bytes =
          static_cast<int64_t>(logical.Get(k).memory_limit_mb(0)) * kMegabyte;
    } else {
      bytes =
          MemoryOfGpu(gpu_options, memory(gpu), groups,
                      1 + *std::max_element(contexts.begin(), contexts.end()));
    }
    // Rounded down: memory limits are given in whole megabytes.
    const int64_t group_bytes = bytes / groups / kMegabyte * kMegabyte;
    if (group_bytes < kMegabyte) {
      const MemoryInfo info = memory(gpu);
      return absl::ResourceExhaustedError(absl::StrCat(
          "GPU ", gpu, " has ", std::max<int64_t>(bytes, 0) / kMegabyte,
          " MiB to give, too little for ", groups,
          " stream groups of at least 1 MiB each. Of its ",
          info.total_bytes / kMegabyte, " MiB ", info.free_bytes / kMegabyte,
          " are free, of which some are kept for CUDA's libraries; see with "
          "nvidia-smi which processes have the rest."));
    }
    sizes.push_back({gpu, groups, group_bytes, std::move(contexts)});
  }
  return sizes;
}

bool AllowGrowth(const GPUOptions& options) {
  const char* forced = std::getenv("TF_FORCE_GPU_ALLOW_GROWTH");
  const std::string value = forced == nullptr ? "" : forced;
  if (value == "true") return true;
  if (value == "false") return false;
  return options.allow_growth();
}

}  // namespace tensorflow::multistream
