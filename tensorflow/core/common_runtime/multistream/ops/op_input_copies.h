// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does an op get copies of inputs that it must not use? An OpScope replaces
// the inputs by copies in its group's memory, and restores them at its end.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_launch.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// Copies within or into the memory of the op's group, in stream order.
using CopyOnStream =
    std::function<absl::Status(const Tensor& from, Tensor* to)>;

class OpInputCopies {
 public:
  // Replaces `inputs` by copies in `allocator`'s memory until Restore.
  absl::Status Copy(const OpLaunch& op, const std::vector<int>& inputs,
                    Allocator* allocator, const CopyOnStream& copy);
  // Does nothing without copies.
  void Restore(OpKernelContext* context) {
    if (copies_ != nullptr) OpParams(context)->inputs = original_inputs_;
  }

 private:
  std::unique_ptr<std::vector<Tensor>> copies_;
  std::vector<TensorValue> copied_inputs_;
  absl::Span<const TensorValue> original_inputs_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_
