// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a stream group's device differ from TensorFlow's own GPU device,
// which no header declares? cuda_gpu_factory.h makes one for each group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/lib/core/refcount.h"

namespace tensorflow::multistream {

class CudaDevice : public BaseGPUDevice {
 public:
  // `pinned`: host memory for copies; nullptr: the memory that all devices
  // share.
  CudaDevice(const SessionOptions& options, const std::string& name,
             Bytes memory_limit, const DeviceLocality& locality,
             tsl::TfDeviceId tf_device_id, const std::string& description,
             Allocator* gpu_allocator, Allocator* cpu_allocator,
             Allocator* pinned);

  Allocator* GetAllocator(AllocatorAttributes attributes) override;

  // No pool, so that nested calls keep the runner of their step.
  thread::ThreadPool* tensorflow_device_thread_pool() override {
    return nullptr;
  }

  // Call once the device and its `group` are ready.
  void SetContext(multistream::StreamGroup* group);

  // Call after SetContext if TensorFlow merges the copy streams into the
  // compute stream.
  void CompleteMergedCopies(multistream::StreamGroup* group);

  // Overridden because TensorFlow copies with a device context of its own.
  absl::Status MakeTensorFromProto(const TensorProto& proto,
                                   AllocatorAttributes attributes,
                                   Tensor* tensor) override;

 private:
  const bool force_gpu_compatible_;
  Allocator* const pinned_;
  DeviceBase::AcceleratorDeviceInfo own_info_;
  core::RefCountPtr<DeviceContext> merged_context_;
  multistream::StreamGroup* merged_group_ = nullptr;
};

using CudaGroupDevice = GroupDevice<CudaDevice>;

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_
