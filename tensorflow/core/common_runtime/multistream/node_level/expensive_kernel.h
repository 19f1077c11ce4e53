// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does TensorFlow's executor learn that a kernel should run in a thread of
// its own? The LaunchPlanner marks kernels that begin a branch or may block.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_EXPENSIVE_KERNEL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_EXPENSIVE_KERNEL_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

// The executor runs all ready inexpensive kernels in one thread, and treats
// every GPU kernel as inexpensive, so one thread would launch all branches. An
// expensive kernel gets another thread, which then runs the nodes that the
// kernel makes ready. OpKernel has no setter for this, but an explicit
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
