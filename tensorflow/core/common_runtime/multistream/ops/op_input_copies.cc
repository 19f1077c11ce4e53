/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

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
