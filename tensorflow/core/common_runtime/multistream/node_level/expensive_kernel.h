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
