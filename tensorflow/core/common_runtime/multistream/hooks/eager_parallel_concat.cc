// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does ParallelConcat run eagerly? TensorFlow has no kernel that computes
// it: a graph pass replaces it by other ops. With groups an eager op is not run
// as a graph (RunsEagerOpsAsFunctions), so it needs this kernel.

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/register_types.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

// Each value becomes a row of the result.
template <bool kOnGpu>
class EagerParallelConcat : public OpKernel {
 public:
  explicit EagerParallelConcat(OpKernelConstruction* context)
      : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("shape", &shape_));
  }

  void Compute(OpKernelContext* context) override {
    for (int i = 0; i < context->num_inputs(); ++i) {
      OP_REQUIRES_OK(context, Check(i, context->input(i).shape()));
    }
    Tensor* result = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, shape_, &result));
    if (result->NumElements() == 0) return;
    for (int i = 0; i < context->num_inputs(); ++i) {
      Tensor row = result->Slice(i, i + 1);
      OP_REQUIRES_OK(context, Copy(context, context->input(i), &row));
    }
  }

 private:
  // On a GPU, enqueues the copy on the device's stream.
  static absl::Status Copy(OpKernelContext* context, const Tensor& from,
                           Tensor* to) {
    if constexpr (!kOnGpu) {
      tensor::DeepCopy(from, to);
      return absl::OkStatus();
    }
    absl::Status status = absl::InternalError("a copy was not enqueued");
    context->op_device_context()->CopyTensorInSameDevice(
        &from, static_cast<Device*>(context->device()), to,
        [&status](const absl::Status& copied) { status = copied; });
    return status;
  }

  absl::Status Check(int i, const TensorShape& value) const {
    if (shape_.dims() < 1) {
      return absl::InvalidArgumentError(
          "the rank of 'shape' must be greater than 0");
    }
    if (shape_.dim_size(0) <= i) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the first dimension of 'shape' ", shape_.DebugString(),
          " must be greater than the index of values[", i, "]: ", i));
    }
    TensorShape row = shape_;
    row.set_dim(0, 1);
    if (value == row) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "values[", i, "] has the shape ", value.DebugString(), ", and 'shape' ",
        shape_.DebugString(), " wants ", row.DebugString()));
  }

  TensorShape shape_;
};

// Registered for the types of TensorFlow's own kernels, which only return an
// error that the graph pass should have replaced them.
#define REGISTER(type, device, on_gpu)                   \
  REGISTER_KERNEL_BUILDER(Name("ParallelConcat")         \
                              .Device(device)            \
                              .TypeConstraint<type>("T") \
                              .Priority(1),              \
                          EagerParallelConcat<on_gpu>)
#define REGISTER_ON_HOST(type) REGISTER(type, DEVICE_CPU, false);
#define REGISTER_ON_GPU(type) REGISTER(type, DEVICE_GPU, true);
TF_CALL_POD_STRING_TYPES(REGISTER_ON_HOST);
TF_CALL_GPU_NUMBER_TYPES(REGISTER_ON_GPU);
#undef REGISTER
#undef REGISTER_ON_HOST
#undef REGISTER_ON_GPU

}  // namespace
}  // namespace tensorflow::multistream
