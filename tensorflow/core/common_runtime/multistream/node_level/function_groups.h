// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group do a function's nodes get if the function is called inside a
// stream scope? The group of the call, so a function has a copy for each group:
//
//   call A (group 1) -> f            call A -> f__stream_group_1
//   call B (group 2) -> f      =>    call B -> f__stream_group_2
//   call C           -> f            call C -> f
//
// where f__stream_group_1 is f with group 1 on every node that has no group of
// its own. Functions that f calls, and the branches and bodies of its control
// flow, are copied in the same way. A function that is called outside every
// scope but has scopes inside becomes f__stream_groups.
//
// This happens before functions are inlined and placed, so that the nodes which
// an executor sees all carry their group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow::multistream {

// The attribute of a node that says which group a stream scope gave it to.
inline constexpr char kStreamGroupAttr[] = "_stream_group";
// The attribute of a copied function: the name of the original.
inline constexpr char kStreamCopyOfAttr[] = "_stream_copy_of";

// Must come before LowerFunctionalOpsPass (phase 10), which lowers functions.
inline constexpr int kFunctionGroupsPhase = 5;

// Makes the copies for `options.graph`, of functions in `options.flib_def` or,
// if that is nullptr, in the graph's library. Does nothing unless `enabled`.
absl::Status AssignFunctionGroups(const GraphOptimizationPassOptions& options,
                                  bool enabled);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_H_
