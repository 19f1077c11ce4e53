// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_memory.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "xla/stream_executor/gpu/gpu_init.h"

namespace tensorflow {
namespace multistream {
namespace {

// On an H200 each group took 50 to 60 MiB, including cuBLAS's workspace.
constexpr int64_t kHandlesMegabytes = 28;
// On an H200 each context took 524 MiB, before TensorFlow's kernels were loaded
// into it.
constexpr int64_t kContextMegabytes = 800;

absl::StatusOr<std::unique_ptr<SubAllocator>> MemoryOf(int gpu,
                                                       se::MemorySpace space) {
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!executor.ok()) return executor.status();
  return NewMemory(*executor, gpu, space);
}

}  // namespace

MemoryInfo CudaMemoryInfo(int gpu) {
  MemoryInfo info = {0, 0, 0};
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (!executor.ok() ||
      !(*executor)->DeviceMemoryUsage(&info.free_bytes, &info.total_bytes)) {
    return info;
  }
  // TensorFlow's own reserve, as documented for its GPU memory: it grows with
  // the size of the CUDA libraries for newer chips.
  const int major =
      (*executor)->GetDeviceDescription().cuda_compute_capability().major;
  const int64_t mb = info.free_bytes < (int64_t{1} << 31) ? 225
                     : major <= 6                         ? 500
                     : major <= 7                         ? 1050
                     : major <= 8                         ? 1536
                                                          : 1800;
  info.reserved_bytes = mb << 20;
  // cuBLAS's default workspace (its documentation, cublasSetWorkspace), and
  // the handles.
  const int64_t workspace_mb = major == 9 || major == 10 ? 32
                               : major >= 12             ? 12
                                                         : 4;
  info.reserved_per_group_bytes = (workspace_mb + kHandlesMegabytes) << 20;
  info.reserved_per_context_bytes = kContextMegabytes << 20;
  if (info.reserved_bytes >= info.free_bytes) info.reserved_bytes = 0;
  return info;
}

std::pair<const void*, size_t> CudaRegionOf(int gpu, const void* address,
                                            size_t bytes) {
  auto executor = se::GPUMachineManager()->ExecutorForDevice(gpu);
  if (executor.ok()) {
    auto range = MemoryRange(
        *executor, se::DeviceAddressBase(const_cast<void*>(address), bytes));
    if (range.ok()) return {range->opaque(), range->size()};
  }
  return {address, bytes};
}

absl::StatusOr<std::unique_ptr<SubAllocator>> NewCudaMemory(int gpu,
                                                            bool unified) {
  return MemoryOf(
      gpu, unified ? se::MemorySpace::kUnified : se::MemorySpace::kDevice);
}

absl::StatusOr<std::unique_ptr<Allocator>> NewPinnedMemory(
    const StreamGroup& group) {
  auto memory = MemoryOf(group.gpu(), se::MemorySpace::kHost);
  if (!memory.ok()) return memory.status();
  int64_t megabytes = 1 << 16;
  if (const char* limit = std::getenv("TF_GPU_HOST_MEM_LIMIT_IN_MB")) {
    int64_t asked;
    if (absl::SimpleAtoi(limit, &asked) && asked > 0) megabytes = asked;
  }
  BFCAllocator::Options options;
  options.allow_growth = true;
  return std::make_unique<HostAllocator>(std::make_unique<BFCAllocator>(
      *std::move(memory), megabytes << 20,
      absl::StrCat("GPU_", group.gpu(), "_group_", group.index(), "_host_bfc"),
      options));
}

}  // namespace multistream
}  // namespace tensorflow
