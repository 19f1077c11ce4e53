// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups would the nodes of a graph have, and why? For people to read: no
// device or kernel is made. The programs' interface asks, for Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow {
namespace multistream {

// A line "NODE<tab>GROUP<tab>WHY" for each node of function `function` of
// `graph`, or of the graph itself if `function` is empty. Leaves out nodes
// whose group follows from attribute and caller alone: WHY is "file",
// "propagated" or "leader: REASON". NotFound: no such function.
// InvalidArgument: the graph is not valid or names a group that does not exist.
absl::StatusOr<std::string> PlanTable(const GraphDef& graph,
                                      const std::string& function,
                                      const NodePlanOptions& options);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_TABLE_H_
