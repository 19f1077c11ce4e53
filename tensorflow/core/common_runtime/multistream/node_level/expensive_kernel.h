// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does TensorFlow's executor learn that it should run a kernel in a thread
// of its own? The LaunchPlanner says it of those that begin a branch or may
// block.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_EXPENSIVE_KERNEL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_EXPENSIVE_KERNEL_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

// The executor runs all inexpensive kernels that are ready in one thread, and
// takes every kernel of a GPU for inexpensive: so one thread would launch all
// branches. A kernel that is expensive gets another thread, which goes on with
// what it makes ready. OpKernel has no way to say so, but an explicit
// instantiation may name a private member.
template <bool OpKernel::*member>
struct ExpensiveMember {
  friend void SetExpensive(OpKernel* kernel, bool expensive) {
    kernel->*member = expensive;
  }
};
void SetExpensive(OpKernel* kernel, bool expensive);
template struct ExpensiveMember<&OpKernel::expensive_>;

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_EXPENSIVE_KERNEL_H_
