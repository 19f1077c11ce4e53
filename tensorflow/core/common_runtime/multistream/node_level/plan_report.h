// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do people see of plans? Which groups the nodes of a graph would have,
// and which groups nodes had in steps that ran. The programs' interface asks,
// for Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_REPORT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow::multistream {

// A line "NODE<tab>GROUP<tab>WHY" for each node of function `function` of
// `graph`, or of the graph itself if `function` is empty. Leaves out nodes
// whose group follows from attribute and caller alone: WHY is "file",
// "propagated" or "leader: REASON". NotFound: no such function.
// InvalidArgument: the graph is not valid or names a group that does not exist.
// No device or kernel is made.
absl::StatusOr<std::string> PlanTable(const GraphDef& graph,
                                      const std::string& function,
                                      const NodePlanOptions& options);

// The groups of nodes in the steps that run between Start and Stop, which
// tf.cuda.save_plan calls; the node-level executor adds each step's groups. One
// record for the whole process. Thread-safe.
class SavedPlan {
 public:
  // Clears the record.
  static void Start();
  // Clears the record.
  static void Stop();
  static bool IsOn();

  static void Add(const std::string& node, int group);

  // "GROUP NAME" for each node, by group and name. InvalidArgument names a node
  // that has had several groups, for example as two graphs share its name.
  static absl::StatusOr<std::string> Lines();
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_PLAN_REPORT_H_
