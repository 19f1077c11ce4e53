// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which variable must be moved before a group gathers from it, and how?
//
// A gather sets its variable to copy-on-read mode. For that the kernel may copy
// the variable into memory of the group that gathers. So with several groups a
// GroupDevice does both before the op, on the leader, in the order of reads and
// changes.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_GATHERED_VARIABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_GATHERED_VARIABLE_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

inline bool MayMakeGathered(GpuGroups* gpu, const OpKernel* kernel) {
  return gpu->size() > 1 && (kernel->type_string_view() == "ResourceGather" ||
                             kernel->type_string_view() == "ResourceGatherNd");
}

// `allocator` and `copy` are the leader's. Call before the OpScope is made.
absl::Status MakeGathered(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
                          OpKernelContext* context, Allocator* allocator,
                          const CopyOnStream& copy);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_GATHERED_VARIABLE_H_
