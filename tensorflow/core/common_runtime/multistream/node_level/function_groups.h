// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group do the nodes of a function have that is called inside a stream
// scope? That of the call, for each call anew:
//
//   call A (group 1) -> f            call A -> f__stream_group_1
//   call B (group 2) -> f      =>    call B -> f__stream_group_2
//   call C           -> f            call C -> f
//
// where f__stream_group_1 is f with group 1 on every node that has no group of
// its own. What f calls, as a function or as the branches and body of control
// flow, follows in the same way. A function that is called outside every scope
// and has scopes inside becomes f__stream_groups.
//
// This happens before functions are inlined and placed, so that the nodes which
// an executor sees all carry their group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow {
namespace multistream {

// The attribute of a node that says which group a stream scope gave it to.
inline constexpr char kStreamGroupAttr[] = "_stream_group";
// The attribute of a function made here: the name of the function that it is a
// copy of.
inline constexpr char kStreamCopyOfAttr[] = "_stream_copy_of";

// Before functions are lowered, which LowerFunctionalOpsPass does in phase 10.
inline constexpr int kFunctionGroupsPhase = 5;

// Does the above for `options.graph`, with functions of `options.flib_def` or,
// without that, of the graph. Does nothing unless `enabled`.
absl::Status AssignFunctionGroups(const GraphOptimizationPassOptions& options,
                                  bool enabled);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_
