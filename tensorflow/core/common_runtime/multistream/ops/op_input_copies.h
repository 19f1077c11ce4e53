// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What is copied before an op is launched?
//
// Inputs that the op must not use: an OpScope replaces them by copies in its
// group's memory, and restores them at its end.
//
// A variable that another group gathers from. A gather sets its variable to
// copy-on-read mode. For that the kernel may copy the variable into memory of
// the group that gathers. So with several groups a GroupDevice does both before
// the op, on the leader, in the order of reads and changes.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

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

inline bool MayMakeGathered(GpuGroups* gpu, const OpKernel* kernel) {
  return gpu->size() > 1 && (kernel->type_string_view() == "ResourceGather" ||
                             kernel->type_string_view() == "ResourceGatherNd");
}

// `allocator` and `copy` are the leader's. Call before the OpScope is made.
absl::Status MakeGathered(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
                          OpKernelContext* context, Allocator* allocator,
                          const CopyOnStream& copy);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_INPUT_COPIES_H_
