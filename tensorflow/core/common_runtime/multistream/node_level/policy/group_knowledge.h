// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

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

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_GROUP_KNOWLEDGE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_GROUP_KNOWLEDGE_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

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

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_GROUP_KNOWLEDGE_H_
