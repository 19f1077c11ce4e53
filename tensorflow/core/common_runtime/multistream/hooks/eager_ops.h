// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a single eager op run? replaced_functions.cc and source_hooks.cc ask
// for each.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_

#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"

namespace tensorflow {
namespace multistream {

// Replaces EagerContext::RunEagerOpAsFunction, which is `stock`.
//
// Stock TensorFlow may run an eager op as a function of one op. All one-op
// functions share one rendezvous, in which the calls of two threads can take
// each other's inputs, and each call would be a step on some group. With
// groups, an eager op is therefore a plain kernel on the visible device, on the
// leader's stream.
inline bool RunsEagerOpsAsFunctions(absl::FunctionRef<bool()> stock) {
  return !GroupsAreRegistered() && stock();
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_EAGER_OPS_H_
