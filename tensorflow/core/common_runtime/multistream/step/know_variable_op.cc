// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The op by which Python comes to know a variable (ops/known_variable.h).

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/ops/known_variable.h"
#include "tensorflow/core/common_runtime/multistream/step/renamed_leader.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {

// `value` is the variable's, `known` the address of a KnownVariable, or 0.
REGISTER_OP("_MultiStreamKnownVariable")
    .Input("variable: resource")
    .Output("value: dtype")
    .Output("known: int64")
    .Attr("dtype: type")
    .SetIsStateful()
    .SetShapeFn(shape_inference::UnknownShape);

namespace {

class KnowVariable : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    core::RefCountPtr<Var> variable;
    OP_REQUIRES_OK(context, LookupResource(context, HandleFromInput(context, 0),
                                           &variable));
    Tensor* known = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(1, {}, &known));
    known->scalar<int64_t>()() = 0;
    Tensor value;
    bool can_be = false;
    {
      mutex_lock lock(*variable->mu());  // alone: known_variable.h
      OP_REQUIRES(context, variable->is_initialized,
                  absl::FailedPreconditionError("the variable has no value"));
      value = *variable->tensor();
      can_be = KnownVariable::CanBe(*variable, value);
    }
    OP_REQUIRES(
        context, value.dtype() == output_type(0),
        absl::InvalidArgumentError(absl::StrCat(
            "the variable has values of type ", DataTypeString(value.dtype()),
            ", and is read as ", DataTypeString(output_type(0)))));
    context->set_output(0, value);
    // A resource with a name may be destroyed, and made again.
    can_be = can_be && HandleFromInput(context, 0).IsRefCounting();
    // VariableOrder is of devices with groups.
    auto* device = dynamic_cast<Device*>(context->device());
    if (!can_be || device == nullptr || LeaderOf(device) == nullptr) return;
    known->scalar<int64_t>()() = reinterpret_cast<int64_t>(
        std::make_unique<KnownVariable>(std::move(variable), std::move(value))
            .release());
  }
};

// An emulated GPU runs the CPU's kernels.
REGISTER_KERNEL_BUILDER(Name("_MultiStreamKnownVariable").Device(DEVICE_CPU),
                        KnowVariable);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamKnownVariable")
                            .Device(DEVICE_GPU)
                            .HostMemory("variable")
                            .HostMemory("known"),
                        KnowVariable);

}  // namespace
}  // namespace tensorflow::multistream
