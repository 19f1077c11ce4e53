// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which variables does an op take? Resource variables by their handles, and
// reference variables of TensorFlow 1. The parts of an OpScope ask.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_VARIABLES_H_

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// The handles in a tensor of type DT_RESOURCE.
absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor);

// Whether the handle's resource is a variable.
bool IsVariable(const ResourceHandle& handle);

// Whether an input is a reference to a variable. References to strings do not
// count: GPUs have no string variables, and such a reference is usually a
// queue's handle.
bool TakesReferenceVariable(OpKernelContext* context, int input);

// Whether any input is a variable.
bool TakesVariable(OpKernelContext* context);

// Calls `f` with each existing variable among the op's resource handles.
void ForEachVariable(OpKernelContext* context, absl::FunctionRef<void(Var*)> f);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_VARIABLES_H_
