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

// How does a single eager op run? replaced_functions.cc and source_hooks.cc ask
// for each.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_

#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"

namespace tensorflow {
namespace multistream {

// In the place of EagerContext::RunEagerOpAsFunction, which is `stock`.
//
// TensorFlow runs an eager op as a function of one op. All such functions share
// one rendezvous, in which the calls of two threads can take each other's
// inputs, and each would be a step on some group. With groups, an eager op is
// what it was before: a kernel on the visible device, on the leader's stream.
inline bool RunsEagerOpsAsFunctions(absl::FunctionRef<bool()> stock) {
  return !GroupsAreRegistered() && stock();
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_
