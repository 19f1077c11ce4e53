// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which devices does a CUDA GPU with stream groups have? A BaseGPUDevice for
// each group, with its own streams and allocator, of which TensorFlow sees only
// the leader's. hooks/ registers the factory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_GPU_FACTORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_GPU_FACTORY_H_

#include <memory>

#include "tensorflow/core/common_runtime/device_factory.h"

namespace tensorflow::multistream {

std::unique_ptr<DeviceFactory> NewCudaGpuFactory();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_GPU_FACTORY_H_
