// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

absl::Status OpInputCopies::Copy(const OpLaunch& op,
                                 const std::vector<int>& inputs,
                                 Allocator* allocator,
                                 const CopyOnStream& copy) {
  original_inputs_ = OpParams(op.context)->inputs;
  copied_inputs_.assign(original_inputs_.begin(), original_inputs_.end());
  copies_ = std::make_unique<std::vector<Tensor>>();
  copies_->reserve(inputs.size());
  for (int i : inputs) {
    const Tensor& from = *original_inputs_[i].tensor;
    if (!DataTypeCanUseMemcpy(from.dtype())) continue;
    Tensor to(allocator, from.dtype(), from.shape());
    if (!to.IsInitialized()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("Out of memory: stream group ", op.group->index(),
                       " of /device:GPU:", op.group->gpu(), " has no ",
                       from.TotalBytes(), " bytes for a copy of input ", i,
                       " of ", op.context->op_kernel().name()));
    }
    absl::Status status = copy(from, &to);
    if (!status.ok()) return status;
    copies_->push_back(std::move(to));
    copied_inputs_[i] = TensorValue(&copies_->back());
  }
  OpParams(op.context)->inputs = copied_inputs_;
  return absl::OkStatus();
}

absl::Status MakeGathered(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
                          OpKernelContext* context, Allocator* allocator,
                          const CopyOnStream& copy) {
  core::RefCountPtr<Var> var;
  // If the input is wrong, the kernel reports the error.
  if (!context->has_input(0) ||
      !LookupResource(context, HandleFromInput(context, 0), &var).ok()) {
    return absl::OkStatus();
  }
  const auto must_move = [&var] {
    const Tensor& tensor = *var->tensor();
    return !var->copy_on_read_mode.load() && tensor.IsInitialized() &&
           !tensor.RefCountIsOne() && DataTypeCanUseMemcpy(tensor.dtype());
  };
  const GpuGroups::StateKey state[] = {
      StateKeyOf(HandleFromInput(context, 0), context->resource_manager())};
  Tensor moved;
  while (!var->copy_on_read_mode.load()) {
    // Allocate without the lock: its waiters may be the ones to free memory.
    DataType type = DT_INVALID;
    TensorShape shape;
    {
      tf_shared_lock lock(*var->mu());
      if (must_move()) {
        type = var->tensor()->dtype();
        shape = var->tensor()->shape();
      }
    }
    if (type != DT_INVALID &&
        !(moved.dtype() == type && moved.shape() == shape)) {
      moved = Tensor(allocator, type, shape);
      if (!moved.IsInitialized()) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "Out of memory: stream group 0 of /device:GPU:", group->gpu(),
            " has no ", shape.num_elements() * DataTypeSize(type),
            " bytes for a copy of the variable that ", kernel->name(),
            " reads"));
      }
    }
    gpu->BeginWrite(state);
    bool is_done = true;
    absl::Status status = [&]() -> absl::Status {
      mutex_lock lock(*var->mu());
      Tensor* tensor = var->tensor();
      if (var->copy_on_read_mode.load() || !tensor->IsInitialized()) {
        return absl::OkStatus();
      }
      if (must_move()) {
        // `moved` does not fit: the value was replaced or shared meanwhile.
        is_done = moved.dtype() == tensor->dtype() &&
                  moved.shape() == tensor->shape() && moved.IsInitialized();
        if (!is_done) return absl::OkStatus();
        absl::Status copied = copy(*tensor, &moved);
        if (!copied.ok()) return copied;
        *tensor = std::move(moved);
      }
      var->copy_on_read_mode.store(true);
      return absl::OkStatus();
    }();
    gpu->EndWrite(state);
    if (!status.ok() || is_done) return status;
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
