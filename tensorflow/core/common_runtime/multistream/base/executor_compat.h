// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What differs between TensorFlow releases in how a GPU's contexts and memory
// are made. Apart from compat.h, as few files make them.

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

namespace tensorflow::multistream {

// The executor's context is the thread's for as long as the result lives.
inline se::gpu::ScopedActivateContext Activated(se::StreamExecutor* executor) {
  return se::gpu::ScopedActivateContext(executor);
}

// TensorFlow's function that makes a GPU's context. TensorFlow's number of a
// GPU and CUDA's may differ.
inline constexpr auto kCreateContext = &se::gpu::GpuDriver::CreateContext;

// Calls `create`, which is kCreateContext or has its type.
inline absl::StatusOr<se::gpu::CudaContext*> CallCreateContext(
    decltype(kCreateContext) create, int number, CUdevice device) {
  se::gpu::Context* context = nullptr;
  TF_RETURN_IF_ERROR(create(number, device, &context));
  return static_cast<se::gpu::CudaContext*>(context);
}

// Adapts `kCreate` to the type of kCreateContext.
template <absl::StatusOr<se::gpu::CudaContext*> (*kCreate)(int, CUdevice)>
absl::Status AsCreateContext(int number, CUdevice device,
                             se::gpu::Context** context) {
  auto created = kCreate(number, device);
  if (!created.ok()) return created.status();
  *context = *created;
  return absl::OkStatus();
}

// The contexts that we make. TensorFlow's list of contexts is not accessible,
// and TensorFlow aborts where a thread's context is not on its list.
using AddedContexts = se::gpu::ContextMap<CUcontext, se::gpu::CudaContext>;
inline std::atomic<AddedContexts*> added_contexts{nullptr};

// Makes TensorFlow's object for one of our contexts. Not thread-safe.
inline absl::StatusOr<se::gpu::CudaContext*> AddContext(CUcontext context,
                                                        int number) {
  static auto* const added = new AddedContexts([](void*) { return 0; });
  se::gpu::CudaContext* const object = added->Add(context, number);
  added_contexts.store(added, std::memory_order_release);
  return object;
}

// Whether `context` is the thread's current one. `stock`: TensorFlow's
// function, for the contexts that TensorFlow has made.
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

// Replaces two functions of TensorFlow: CreateContext, by `kCreate` (see
// AsCreateContext), and IsActive. IsActive is virtual, so a member pointer
// does not give its address; hence the function with the mangled name.
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

// Allocates a GPU's memory, or pinned host memory.
inline absl::StatusOr<std::unique_ptr<SubAllocator>> NewMemory(
    se::StreamExecutor* executor, int gpu, se::MemorySpace space) {
  const std::vector<SubAllocator::Visitor> none;
  if (space == se::MemorySpace::kHost) {
    return std::make_unique<se::DeviceHostAllocator>(executor, gpu, none, none);
  }
  return std::make_unique<se::DeviceMemAllocator>(
      executor, tsl::PlatformDeviceId(gpu), space, none, none);
}

// The whole allocation that contains `memory`.
inline absl::StatusOr<se::DeviceAddressBase> MemoryRange(
    se::StreamExecutor* executor, const se::DeviceAddressBase& memory) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  TF_RETURN_IF_ERROR(se::gpu::GpuDriver::GetPointerAddressRange(
      reinterpret_cast<CUdeviceptr>(memory.opaque()), &base, &bytes));
  return se::DeviceAddressBase(reinterpret_cast<void*>(base), bytes);
}

}  // namespace tensorflow::multistream

#else

#include "xla/stream_executor/activate_context.h"
#include "xla/stream_executor/cuda/cuda_context.h"
#include "xla/stream_executor/gpu/context_map.h"
#include "xla/stream_executor/integrations/stream_executor_allocator.h"

namespace tensorflow::multistream {

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

}  // namespace tensorflow::multistream

#endif

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_EXECUTOR_COMPAT_H_
