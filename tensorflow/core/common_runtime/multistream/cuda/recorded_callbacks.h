// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What happens to host callbacks that a kernel enqueues while its step is
// recorded? Nothing completes during a capture, so the callbacks are kept, and
// run when the recording is destroyed, because they free memory that recorded
// copies read. hooks/ asks for each callback of an event manager, and for each
// cudaStreamAddCallback: Eigen's device frees scratch memory with it, and would
// end the process when the driver refuses.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_

#include <functional>
#include <vector>

#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {

using Callbacks = std::vector<std::function<void()>>;

// While it lives, callbacks that any thread enqueues on `stream` are appended
// to `callbacks`.
class KeepCallbacks {
 public:
  KeepCallbacks(se::Stream* stream, Callbacks* callbacks);
  ~KeepCallbacks();

 private:
  se::Stream* const stream_;
};

// True if `callback` was kept, and is empty now.
bool KeptCallback(se::Stream* stream, std::function<void()>* callback);
// The same with the arguments of cudaStreamAddCallback: the stream's handle,
// the callback of handle and result, and its user data.
bool KeptCallback(void* stream, void (*callback)(void*, int, void*),
                  void* data);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_
