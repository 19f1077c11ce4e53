// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What differs between TensorFlow releases in how a GPU's contexts and memory
// are made, in one place: compat.h's other half, for the few that make them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_EXECUTOR_COMPAT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_EXECUTOR_COMPAT_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/integrations/device_mem_allocator.h"
#include "xla/tsl/framework/device_id.h"

#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 19

#include "xla/stream_executor/cuda/cuda_driver.h"
#include "xla/stream_executor/gpu/context.h"
#include "xla/stream_executor/gpu/context_map.h"
#include "xla/stream_executor/gpu/gpu_driver.h"
#include "xla/stream_executor/gpu/scoped_activate_context.h"
#include "xla/stream_executor/integrations/device_host_allocator.h"

namespace tensorflow {
namespace multistream {

// While what it returns lives, the thread has the executor's context.
inline se::gpu::ScopedActivateContext Activated(se::StreamExecutor* executor) {
  return se::gpu::ScopedActivateContext(executor);
}

// The function with which TensorFlow makes the context of a GPU, for which it
// has a number and CUDA another one.
inline constexpr auto kCreateContext = &se::gpu::GpuDriver::CreateContext;

// Calls a function of that kind.
inline absl::StatusOr<se::gpu::CudaContext*> CallCreateContext(
    decltype(kCreateContext) create, int number, CUdevice device) {
  se::gpu::Context* context = nullptr;
  TF_RETURN_IF_ERROR(create(number, device, &context));
  return static_cast<se::gpu::CudaContext*>(context);
}

// `kCreate` as a function of that kind.
template <absl::StatusOr<se::gpu::CudaContext*> (*kCreate)(int, CUdevice)>
absl::Status AsCreateContext(int number, CUdevice device,
                             se::gpu::Context** context) {
  auto created = kCreate(number, device);
  if (!created.ok()) return created.status();
  *context = *created;
  return absl::OkStatus();
}

// The contexts that TensorFlow has not made. Its own list of contexts is its
// own alone, and it ends the process where a thread has one that is not in it.
using AddedContexts = se::gpu::ContextMap<CUcontext, se::gpu::CudaContext>;
inline std::atomic<AddedContexts*> added_contexts{nullptr};

// Makes TensorFlow's object for such a context; one at a time.
inline absl::StatusOr<se::gpu::CudaContext*> AddContext(CUcontext context,
                                                        int number) {
  static auto* const added = new AddedContexts([](void*) { return 0; });
  se::gpu::CudaContext* const object = added->Add(context, number);
  added_contexts.store(added, std::memory_order_release);
  return object;
}

// Whether `context` is the thread's; `stock` is TensorFlow's function, which
// knows the contexts that it has made.
template <typename Stock>
bool IsActive(const se::gpu::CudaContext* context, Stock stock) {
  AddedContexts* const added = added_contexts.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  if (added == nullptr || cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      !added->Has(current)) {
    return stock(context);
  }
  return current == context->context();
}

// Defines in TensorFlow's place what makes a context, and what asks whether it
// is the thread's; `kCreate` is as for AsCreateContext. IsActive is virtual, so
// that its address is not that of the next one.
#define TFMS_REPLACED_CONTEXT_FUNCTIONS(kCreate)                               \
  namespace stream_executor::gpu {                                             \
  absl::Status GpuDriver::CreateContext(int number, CUdevice device,           \
                                        Context** context) {                   \
    return ::tensorflow::multistream::AsCreateContext<kCreate>(number, device, \
                                                               context);       \
  }                                                                            \
  }                                                                            \
  namespace tensorflow::multistream {                                          \
  bool IsActiveInItsPlace(const se::gpu::GpuContext* context) __asm__(         \
      "_ZNK15stream_executor3gpu10GpuContext8IsActiveEv");                     \
  bool IsActiveInItsPlace(const se::gpu::GpuContext* context) {                \
    return IsActive(context, [](const se::gpu::GpuContext* of) {               \
      static const auto stock = StockFunction(&IsActiveInItsPlace);            \
      return stock(of);                                                        \
    });                                                                        \
  }                                                                            \
  }

// Memory of a GPU, or memory of the host that the GPU reads.
inline absl::StatusOr<std::unique_ptr<SubAllocator>> NewMemory(
    se::StreamExecutor* executor, int gpu, se::MemorySpace space) {
  const std::vector<SubAllocator::Visitor> none;
  if (space == se::MemorySpace::kHost) {
    return std::make_unique<se::DeviceHostAllocator>(executor, gpu, none, none);
  }
  return std::make_unique<se::DeviceMemAllocator>(
      executor, tsl::PlatformDeviceId(gpu), space, none, none);
}

// All of the allocation that `memory` is a part of.
inline absl::StatusOr<se::DeviceAddressBase> MemoryRange(
    se::StreamExecutor* executor, const se::DeviceAddressBase& memory) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  TF_RETURN_IF_ERROR(se::gpu::GpuDriver::GetPointerAddressRange(
      reinterpret_cast<CUdeviceptr>(memory.opaque()), &base, &bytes));
  return se::DeviceAddressBase(reinterpret_cast<void*>(base), bytes);
}

}  // namespace multistream
}  // namespace tensorflow

#else

#include "xla/stream_executor/activate_context.h"
#include "xla/stream_executor/cuda/cuda_context.h"
#include "xla/stream_executor/gpu/context_map.h"
#include "xla/stream_executor/integrations/stream_executor_allocator.h"

namespace tensorflow {
namespace multistream {

inline std::unique_ptr<se::ActivateContext> Activated(
    se::StreamExecutor* executor) {
  return executor->Activate();
}

inline constexpr auto kCreateContext = &se::gpu::CudaContext::Create;

inline absl::StatusOr<se::gpu::CudaContext*> CallCreateContext(
    decltype(kCreateContext) create, int number, CUdevice device) {
  return create(number, device);
}

template <absl::StatusOr<se::gpu::CudaContext*> (*kCreate)(int, CUdevice)>
absl::StatusOr<se::gpu::CudaContext*> AsCreateContext(int number,
                                                      CUdevice device) {
  return kCreate(number, device);
}

inline absl::StatusOr<se::gpu::CudaContext*> AddContext(CUcontext context,
                                                        int number) {
  return se::gpu::CudaContext::GetContextMap()->Add(context, number);
}

#define TFMS_REPLACED_CONTEXT_FUNCTIONS(kCreate)                        \
  namespace stream_executor::gpu {                                      \
  absl::StatusOr<CudaContext*> CudaContext::Create(int number,          \
                                                   CUdevice device) {   \
    return ::tensorflow::multistream::AsCreateContext<kCreate>(number,  \
                                                               device); \
  }                                                                     \
  }

inline absl::StatusOr<std::unique_ptr<SubAllocator>> NewMemory(
    se::StreamExecutor* executor, int gpu, se::MemorySpace space) {
  if (space == se::MemorySpace::kDevice) {
    return std::make_unique<se::DeviceMemAllocator>(executor,
                                                    tsl::PlatformDeviceId(gpu));
  }
  auto memory = executor->CreateMemoryAllocator(space);
  if (!memory.ok()) return memory.status();
  return std::make_unique<se::StreamExecutorAllocator>(
      *std::move(memory), space, gpu, std::vector<SubAllocator::Visitor>(),
      std::vector<SubAllocator::Visitor>());
}

inline absl::StatusOr<se::DeviceAddressBase> MemoryRange(
    se::StreamExecutor* executor, const se::DeviceAddressBase& memory) {
  return executor->GetMemoryRange(memory);
}

}  // namespace multistream
}  // namespace tensorflow

#endif

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_EXECUTOR_COMPAT_H_
