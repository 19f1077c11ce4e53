// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a stream group's device do other than the GPU device that
// TensorFlow makes, which no header declares? cuda_gpu_factory.h makes one for
// each group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_

#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/lib/core/refcount.h"

namespace tensorflow {
namespace multistream {

class CudaDevice : public BaseGPUDevice {
 public:
  // `pinned`: host memory for copies; nullptr: what all devices share.
  CudaDevice(const SessionOptions& options, const std::string& name,
             Bytes memory_limit, const DeviceLocality& locality,
             tsl::TfDeviceId tf_device_id, const std::string& description,
             Allocator* gpu_allocator, Allocator* cpu_allocator,
             Allocator* pinned);

  Allocator* GetAllocator(AllocatorAttributes attributes) override;

  // Nested calls must keep the runner of their step.
  thread::ThreadPool* tensorflow_device_thread_pool() override {
    return nullptr;
  }

  // To be called once the device and `group`, which is the device's, are ready.
  void SetContext(multistream::StreamGroup* group);

  // The same, if streams are merged.
  void CompleteMergedCopies(multistream::StreamGroup* group);

  // Copies in a context that TensorFlow has for itself.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_DEVICE_H_
