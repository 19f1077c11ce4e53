// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_tensor_data.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {

OpUses::OpUses(const RecordingMemory* memory, const OpKernel* kernel,
               OpKernelContext* context)
    : memory_(memory) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_dtype(i) == DT_RESOURCE) {
      continue;
    }
    const Tensor& input = context->input(i);
    if (input.dtype() == DT_VARIANT) {
      AddElements(input);
      continue;
    }
    if (IsOnHost(context->input_memory_type(i), input)) continue;
    // An op may write into an input of which it holds the sole reference.
    const bool writes = input.RefCountIsOne();
    Add(input, writes);
  }
  const FunctionLibraryRuntime* functions = context->function_library();
  const bool writes =
      MayChangeState(*kernel, functions == nullptr
                                  ? nullptr
                                  : functions->GetFunctionLibraryDefinition());
  ForEachVariable(context,
                  [this, writes](const ResourceHandle&, Var* variable) {
                    tf_shared_lock lock(*variable->mu());
                    Add(*variable->tensor(), writes);
                  });
}

std::vector<MemoryUse> OpUses::WithMade(
    OpKernelContext* context, absl::Span<const MemoryUse> allocated) && {
  for (int i = 0; i < context->num_outputs(); ++i) {
    const Tensor* output = context->mutable_output(i);
    if (output == nullptr || output->dtype() == DT_RESOURCE ||
        output->dtype() == DT_VARIANT ||
        IsOnHost(context->output_memory_type(i), *output)) {
      continue;
    }
    // An output that the op writes was allocated by it, or was an input with a
    // sole reference. Other outputs are passed through: an input, a variable's
    // value, a constant.
    Add(*output, /*writes=*/false);
  }
  uses_.insert(uses_.end(), allocated.begin(), allocated.end());
  return std::move(uses_);
}

// On an emulated GPU kernels are host kernels: their host memory may be the
// device's.
bool OpUses::IsOnHost(MemoryType type, const Tensor& tensor) const {
  return type == HOST_MEMORY && !memory_->IsDevice(tensor.data(), 1);
}

// An op that takes a list may read its elements. It does not write them, as the
// list has references to them.
void OpUses::AddElements(const Tensor& list) {
  const auto variants = list.flat<Variant>();
  for (int64_t i = 0; i < variants.size(); ++i) {
    VariantTensorData elements;
    variants(i).Encode(&elements);
    for (const Tensor& element : elements.tensors()) {
      Add(element, /*writes=*/false);
    }
  }
}

// Adds the whole allocation: other tensors may use another part of it.
void OpUses::Add(Tensor tensor, bool writes) {
  if (tensor.data() == nullptr || tensor.TotalBytes() == 0) return;
  TensorBuffer* block = DMAHelper::buffer(&tensor)->root_buffer();
  uses_.push_back(UseOf(block->data(), block->size(), writes));
}

}  // namespace tensorflow::multistream
