// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_variables.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace multistream {

absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor) {
  const auto handles = tensor.flat<ResourceHandle>();
  return absl::MakeConstSpan(handles.data(), handles.size());
}

bool IsVariable(const ResourceHandle& handle) {
  static const uint64_t variable = TypeIndex::Make<Var>().hash_code();
  return handle.hash_code() == variable;
}

bool TakesReferenceVariable(OpKernelContext* context, int input) {
  return OpParams(context)->inputs[input].is_ref() &&
         context->op_kernel().input_type(input) != DT_STRING_REF;
}

bool TakesVariable(OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    const TensorValue& value = OpParams(context)->inputs[i];
    if (value.is_ref()) {
      if (TakesReferenceVariable(context, i)) return true;
      continue;
    }
    if (value.tensor == nullptr || value.tensor->dtype() != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(*value.tensor)) {
      if (IsVariable(handle)) return true;
    }
  }
  return false;
}

void ForEachVariable(OpKernelContext* context,
                     absl::FunctionRef<void(Var*)> f) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_dtype(i) != DT_RESOURCE) {
      continue;
    }
    for (const ResourceHandle& handle : HandlesOf(context->input(i))) {
      core::RefCountPtr<Var> var;
      if (IsVariable(handle) && LookupResource(context, handle, &var).ok()) {
        f(var.get());
      }
    }
  }
}

}  // namespace multistream
}  // namespace tensorflow
