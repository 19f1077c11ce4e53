// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_device.h"

#include <utility>

#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/gpu_device_context.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"

namespace tensorflow::multistream {
namespace {

// With merged streams, TensorFlow reports a copy from the host as done when it
// is enqueued on the compute stream. Other groups would then read data that has
// not arrived, so here the copy is done when the stream has completed it.
class MergedContext : public GPUDeviceContext {
 public:
  MergedContext(const GPUDeviceContext& stock, StreamGroup* group)
      : GPUDeviceContext(
            stock.stream_id(), stock.stream(), stock.host_to_device_stream(),
            stock.device_to_host_stream(), {stock.device_to_device_stream(0)},
            stock.host_memory_allocator()),
        group_(group) {}

  void CopyCPUTensorToDevice(const Tensor* from, Device* device, Tensor* to,
                             StatusCallback done,
                             bool sync_dst_compute) const override {
    GPUDeviceContext::CopyCPUTensorToDevice(
        from, device, to,
        [group = group_, done = std::move(done)](const absl::Status& status) {
          group->WhenCompleted([done, status] { done(status); },
                               /*host_waits=*/true);
        },
        sync_dst_compute);
  }

 private:
  StreamGroup* const group_;
};

}  // namespace

CudaDevice::CudaDevice(const SessionOptions& options, const std::string& name,
                       Bytes memory_limit, const DeviceLocality& locality,
                       tsl::TfDeviceId tf_device_id,
                       const std::string& description, Allocator* gpu_allocator,
                       Allocator* cpu_allocator, Allocator* pinned)
    : BaseGPUDevice(options, name, memory_limit, locality, tf_device_id,
                    description, gpu_allocator, cpu_allocator,
                    /*sync_every_op=*/false),
      force_gpu_compatible_(
          options.config.gpu_options().force_gpu_compatible()),
      pinned_(pinned) {}

Allocator* CudaDevice::GetAllocator(AllocatorAttributes attributes) {
  if (!attributes.on_host()) return gpu_allocator_;
  if (attributes.gpu_compatible() || force_gpu_compatible_) {
    if (pinned_ != nullptr) return pinned_;
    return GPUProcessState::singleton()->GetGpuHostAllocator(
        /*options=*/{}, /*numa_node=*/0);
  }
  return cpu_allocator_;
}

void CudaDevice::SetContext(multistream::StreamGroup* group) {
  if (group->context() == 0) return;
  own_info_ = *tensorflow_accelerator_device_info();
  // TensorFlow's cache of FFT plans, which belong to a context, is keyed by
  // this number, and generated_kernels.h gets the context from it.
  own_info_.gpu_id = NumberOfContext(own_info_.gpu_id, group->context());
  set_tensorflow_accelerator_device_info(&own_info_);
}

void CudaDevice::CompleteMergedCopies(multistream::StreamGroup* group) {
  merged_group_ = group;
  own_info_ = *tensorflow_accelerator_device_info();
  merged_context_.reset(new MergedContext(
      *static_cast<GPUDeviceContext*>(own_info_.default_context), group));
  own_info_.default_context = merged_context_.get();
  set_tensorflow_accelerator_device_info(&own_info_);
}

absl::Status CudaDevice::MakeTensorFromProto(const TensorProto& proto,
                                             AllocatorAttributes attributes,
                                             Tensor* tensor) {
  absl::Status status =
      BaseGPUDevice::MakeTensorFromProto(proto, attributes, tensor);
  if (merged_group_ != nullptr && !attributes.on_host()) {
    status.Update(merged_group_->Block());
  }
  return status;
}

}  // namespace tensorflow::multistream
