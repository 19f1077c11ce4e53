// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Kernels for values that are decided when a step is recorded
// (which/values_on_device.h). How does such a value get to the device? By a
// copy from pinned memory of the recording, which keeps the value for replays.

#include <cstring>
#include <functional>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "tensorflow/core/util/bcast.h"

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

template <class Logic>
class LogicOfDecided : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    const Tensor& y = context->input(1);
    const BCast shapes(BCast::FromShape(x.shape()), BCast::FromShape(y.shape()),
                       /*fewer_dims_optimization=*/false,
                       /*return_flattened_batch_indices=*/true);
    OP_REQUIRES(context, shapes.IsValid(),
                absl::InvalidArgumentError(absl::StrCat(
                    name(), " has inputs of shapes ", x.shape().DebugString(),
                    " and ", y.shape().DebugString())));
    Tensor* z = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, BCast::ToShape(shapes.output_shape()), &z));
    // Where an output's inputs are; empty if they are in the same place.
    const auto& of_x = shapes.x_batch_indices();
    const auto& of_y = shapes.y_batch_indices();
    const auto at = [](const Tensor& tensor, const auto& places, int64_t i) {
      return tensor.flat<bool>()(places.empty() ? i : places[i]);
    };
    for (int64_t i = 0; i < z->NumElements(); ++i) {
      z->flat<bool>()(i) = Logic()(at(x, of_x, i), at(y, of_y, i));
    }
  }
};

class NotOfDecided : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    const Tensor& x = context->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, x.shape(), &y));
    for (int64_t i = 0; i < x.NumElements(); ++i) {
      y->flat<bool>()(i) = !x.flat<bool>()(i);
    }
  }
};

REGISTER_KERNEL_BUILDER(Name("_MultiStreamAndOfDecided").Device(DEVICE_CPU),
                        LogicOfDecided<std::logical_and<bool>>);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamAndOfDecided")
                            .Device(DEVICE_GPU)
                            .HostMemory("x")
                            .HostMemory("y")
                            .HostMemory("z"),
                        LogicOfDecided<std::logical_and<bool>>);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamOrOfDecided").Device(DEVICE_CPU),
                        LogicOfDecided<std::logical_or<bool>>);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamOrOfDecided")
                            .Device(DEVICE_GPU)
                            .HostMemory("x")
                            .HostMemory("y")
                            .HostMemory("z"),
                        LogicOfDecided<std::logical_or<bool>>);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamNotOfDecided").Device(DEVICE_CPU),
                        NotOfDecided);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamNotOfDecided")
                            .Device(DEVICE_GPU)
                            .HostMemory("x")
                            .HostMemory("y"),
                        NotOfDecided);

REGISTER_KERNEL_BUILDER(Name("_MultiStreamCopyOfDecided").Device(DEVICE_CPU),
                        CopyOfDecided);
REGISTER_KERNEL_BUILDER(
    Name("_MultiStreamCopyOfDecided").Device(DEVICE_GPU).HostMemory("value"),
    CopyOfDecided);

}  // namespace
}  // namespace tensorflow::multistream
