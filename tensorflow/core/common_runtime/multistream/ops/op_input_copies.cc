// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace multistream {

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

}  // namespace multistream
}  // namespace tensorflow
