// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Which CUDA context has a group's streams (TF_GPU_CONTEXT_COUNT)?
//
// TensorFlow has one context for each GPU, CUDA's primary one. Others of the
// same process use the same memory, events and pinned memory of the host: a
// stream of one may read what was allocated in another, and wait for its
// events. An event is recorded only on streams of its own context. TensorFlow
// asks a function for it (executor_compat.h), in whose place `attach` asks
// CreateContext.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow {
namespace multistream {

// While it lives, an executor that this thread makes has the context `context`
// of its GPU, which is made if it is not there. 0: the primary one.
class ContextOnThread {
 public:
  explicit ContextOnThread(int context);
  ~ContextOnThread();
  ContextOnThread(const ContextOnThread&) = delete;
  ContextOnThread& operator=(const ContextOnThread&) = delete;

 private:
  const int before_;
};

// A number for `context` of the GPU `gpu` that no other context has; the GPU's
// own for its first context.
int NumberOfContext(int gpu, int context);
// The context of such a number.
int ContextOf(int number);

// Whether the driver runs kernels of several contexts side by side, as under
// NVIDIA's Multi-Process Service; nullopt if it does not say.
std::optional<bool> ContextsRunSideBySide(int gpu);

// In the place of TensorFlow's function that makes a GPU's context, which is
// `stock`; `device` is CUDA's for the GPU of number `gpu`.
absl::StatusOr<se::gpu::CudaContext*> CreateContext(
    int gpu, int device,
    absl::FunctionRef<absl::StatusOr<se::gpu::CudaContext*>()> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_
