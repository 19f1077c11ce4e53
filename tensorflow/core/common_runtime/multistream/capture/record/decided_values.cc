// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The kernels for values that are decided when a step is recorded
// (which/integer_ops.h). How does such a value get to the device? By a copy
// from pinned memory of the recording, which keeps the value for replays.

#include <cstring>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {
namespace {

class CopyOfDecided : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& value = context->input(0);
    Tensor* copy = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, value.shape(), &copy));
    const size_t bytes = value.TotalBytes();
    if (bytes == 0) return;
    DeviceContext* device = context->op_device_context();
    if (device == nullptr || device->stream() == nullptr) {  // emulated
      std::memcpy(copy->data(), value.data(), bytes);
      return;
    }
    Tensor pinned;
    OP_REQUIRES_OK(context, context->allocate_temp(value.dtype(), value.shape(),
                                                   &pinned, PinnedMemory()));
    std::memcpy(pinned.data(), value.data(), bytes);
    se::DeviceAddressBase to(copy->data(), bytes);
    OP_REQUIRES_OK(context,
                   CopyToDevice(device->stream(), pinned.data(), &to, bytes));
  }
};

// For ops that copy their input on the host to the device themselves.
class KeptDecided : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& value = context->input(0);
    Tensor* kept = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, value.shape(), &kept,
                                                     PinnedMemory()));
    std::memcpy(kept->data(), value.data(), value.TotalBytes());
  }
};

REGISTER_KERNEL_BUILDER(Name("_MultiStreamKeptDecided").Device(DEVICE_CPU),
                        KeptDecided);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamKeptDecided")
                            .Device(DEVICE_GPU)
                            .HostMemory("value")
                            .HostMemory("kept"),
                        KeptDecided);

REGISTER_KERNEL_BUILDER(Name("_MultiStreamCopyOfDecided").Device(DEVICE_CPU),
                        CopyOfDecided);
REGISTER_KERNEL_BUILDER(
    Name("_MultiStreamCopyOfDecided").Device(DEVICE_GPU).HostMemory("value"),
    CopyOfDecided);

}  // namespace
}  // namespace tensorflow::multistream
