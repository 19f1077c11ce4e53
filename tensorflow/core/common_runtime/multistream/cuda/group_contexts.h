// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which CUDA context has a group's streams (TF_GPU_CONTEXT_COUNT)?
//
// TensorFlow has one context for each GPU, CUDA's primary one. All contexts of
// a process share device memory, pinned host memory and events; only recording
// an event needs a stream of the event's own context. TensorFlow gets a GPU's
// context from a function (executor_compat.h); hooks/ calls CreateContext
// instead.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {

// While it lives, executors that this thread makes get the context number
// `context` of their GPU, created at first use. 0: the primary context.
class ContextOnThread : public OnThread<ContextOnThread, int> {
 public:
  using OnThread::OnThread;
};

// A number that identifies the context in the process. A GPU's first context
// has the GPU's own number.
int NumberOfContext(int gpu, int context);
// The inverse: `context` of NumberOfContext.
int ContextOf(int number);

// Whether the driver runs kernels of several contexts side by side, as under
// NVIDIA's Multi-Process Service; nullopt if it does not say.
std::optional<bool> ContextsRunSideBySide(int gpu);

// Replaces TensorFlow's function that makes a GPU's context, which is `stock`.
// `device` is CUDA's device of the GPU with number `gpu`.
absl::StatusOr<se::gpu::CudaContext*> CreateContext(
    int gpu, int device,
    absl::FunctionRef<absl::StatusOr<se::gpu::CudaContext*>()> stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GROUP_CONTEXTS_H_
