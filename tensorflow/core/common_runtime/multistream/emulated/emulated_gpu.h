/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// How does a machine without a GPU have devices named /device:GPU:k, for tests?
// Ops run on the CPU; groups, allocators, holds and order are those of a real
// GPU. attach registers the factory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_

#include <memory>

#include "tensorflow/core/common_runtime/device_factory.h"

namespace tensorflow {
namespace multistream {

// Makes options.emulated_gpus GPUs of 4 GiB each.
std::unique_ptr<DeviceFactory> NewEmulatedGpuFactory();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_
