// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What copies to and from a device?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_DEVICE_CONTEXT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_DEVICE_CONTEXT_H_

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/device_base.h"

namespace tensorflow::multistream {

// As OpKernelContext::op_device_context gives it to ops: on a GPU, the context
// that copies in the order of the device's stream; nullptr on a CPU. The device
// owns it.
inline DeviceContext* ContextOf(Device* device) {
  const auto* info = device->tensorflow_accelerator_device_info();
  if (info != nullptr) return info->default_context;
  DeviceContext* context = nullptr;
  // On an emulated GPU. With the `info`, TensorFlow would refuse to take what
  // stays on the host (strings, handles of variables) to a device for CPUs.
  if (device->TryGetDeviceContext(&context).ok() && context != nullptr) {
    context->Unref();
  }
  return context;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_DEVICE_CONTEXT_H_
