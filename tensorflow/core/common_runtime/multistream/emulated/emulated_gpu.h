// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a machine without a GPU have devices named /device:GPU:k, for tests?
// Ops run on the CPU; groups, allocators, holds and order are those of a real
// GPU. hooks/ registers the factory.

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
