// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What becomes of host callbacks that a kernel asks for while its step is
// recorded? Nothing completes then: they are kept, and run when the recording
// ends. They free what a recorded copy reads. `attach` asks for each callback
// of an event manager, and for each of cudaStreamAddCallback: Eigen's device
// frees scratch memory with it, and would end the process where the driver
// refuses.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_

#include <functional>
#include <vector>

#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow {
namespace multistream {

using Callbacks = std::vector<std::function<void()>>;

// While it lives, callbacks on `stream` go to `callbacks`, from any thread.
class KeepCallbacks {
 public:
  KeepCallbacks(se::Stream* stream, Callbacks* callbacks);
  ~KeepCallbacks();

 private:
  se::Stream* const stream_;
};

// True if `callback` was kept, and is empty now.
bool KeptCallback(se::Stream* stream, std::function<void()>* callback);
// The same for what cudaStreamAddCallback was given: a stream's handle, a
// callback of handle and result, and its argument.
bool KeptCallback(void* stream, void (*callback)(void*, int, void*),
                  void* data);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_RECORDED_CALLBACKS_H_
