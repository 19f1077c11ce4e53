// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How long does a step take, if its nodes run in given groups?
//
// The model: each group is a lane. A lane runs one node at a time: the one that
// has been ready (all inputs done) for longest; of equals, the one with the
// lowest number. Each wait that a node needs (group_knowledge.h) takes
// `wait_us` of the node's lane, between the awaited node and the waiting one.
// The step starts and ends in the caller's lane, which waits for the others at
// the end.
//
//        b (6)           in lane:   0   0   1   0       wait_us 1
//       /     \                     a   b   c   d
//   a (4)      d (4)
//       \     /          lane 0:  aaaabbbbbbwdddd       15 us, 2 waits,
//        c (5)           lane 1:      wccccc            19 us on one stream

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STEP_ESTIMATE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STEP_ESTIMATE_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

struct StepEstimate {
  double step_us = 0;
  double one_stream_us = 0;  // of all nodes in one group
  int waits = 0;             // with those at the step's start and end
  int groups_used = 0;       // groups with a node
};

// Makes several estimates of one graph.
class StepModel {
 public:
  // `graph` must outlive the model.
  StepModel(const PolicyGraph& graph, const PolicyOptions& options);

  // `groups` has a group in [0, group_count) for each node.
  StepEstimate Estimate(const std::vector<int>& groups) const;

 private:
  const PolicyGraph& graph_;
  const PolicyOptions options_;
  const NodeLists inputs_;
  const NodeLists consumers_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_STEP_ESTIMATE_H_
