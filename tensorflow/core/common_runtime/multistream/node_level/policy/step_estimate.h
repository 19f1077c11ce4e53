// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How long does a step take, if its nodes run in given groups?
//
// The model: each group is a lane. A lane runs one node at a time: the one that
// has been ready (all inputs done) for longest; of equals, the one with the
// lowest number. Each wait that a node needs (GroupKnowledge) takes
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

#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// Which waits do stream groups need, if they run nodes in a given order?
//
// A group's vector clock covers the nodes that it ran or waited for, and what
// the groups of these knew then. The group waits for inputs that its clock
// lacks: once for each other group at most, and not if another wait implies it.
//
//   group 0:  a -----> c ---------> e       c waits for b. e waits for d and
//                     w            w        not for b, which c waited for.
//   group 1:     b --/      d ----/
//
// The step itself starts and ends in the caller's group: the first node of
// another group comes after the start, and the end after the last node of each
// group.
class GroupKnowledge {
 public:
  // `inputs` must outlive this object.
  GroupKnowledge(const NodeLists& inputs, const PolicyOptions& options);

  // How often `group` must wait if it runs `node` next. All inputs have run.
  int WaitsOf(int node, int group);

  // Runs `node` as the next node of `group`. Returns WaitsOf(node, group).
  int Run(int node, int group);

  // How often the caller's group must wait at the end of the step.
  int WaitsAtEnd();

 private:
  void AddMissing(int node, int group);
  int CountWaits();

  const NodeLists& inputs_;
  const int group_count_;
  const int caller_group_;
  const int
      start_;  // stands for the step's start, as a node of the caller's group
  std::vector<VectorClock> known_after_;  // by node: what its group knows then
  std::vector<VectorClock> known_to_;     // by group
  std::vector<int> group_of_;
  std::vector<int> position_;  // of a node in its group, from 1
  std::vector<int> last_of_;   // by group
  // For the next node: the last node that it needs of each other group.
  std::vector<int> missing_;
};

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
