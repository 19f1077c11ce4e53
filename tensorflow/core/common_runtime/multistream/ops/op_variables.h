// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which variables does an op take? Resource variables by their handles, and
// references, as the kernels of TensorFlow's first version take them. The parts
// of an OpScope ask.

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

// Of a tensor of type DT_RESOURCE.
absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor);

// Whether the handle is a variable's, and not some other resource's.
bool IsVariable(const ResourceHandle& handle);

// Whether an input is a reference to a variable. No GPU has strings, and a
// reference to some is most often a queue's handle.
bool TakesReferenceVariable(OpKernelContext* context, int input);

// Whether any input is a variable.
bool TakesVariable(OpKernelContext* context);

// Calls `f` with each variable whose handle the op has, and that is there.
void ForEachVariable(OpKernelContext* context, absl::FunctionRef<void(Var*)> f);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_VARIABLES_H_
