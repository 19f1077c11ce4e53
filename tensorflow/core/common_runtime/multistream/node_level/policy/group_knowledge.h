// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which waits do stream groups need, if they run nodes in a given order?
//
// A group knows what it ran, what it waited for, and what those nodes' groups
// knew then. It waits for what a node needs and it does not know: at most once
// for each other group, and not for what another of these waits tells it.
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

namespace tensorflow {
namespace multistream {

class GroupKnowledge {
 public:
  // `inputs` outlives it.
  GroupKnowledge(const NodeLists& inputs, const PolicyOptions& options);

  // How often `group` must wait if `node` is its next. All inputs have run.
  int WaitsOf(int node, int group);

  // Makes the node its group's next, and returns the same.
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
  std::vector<VectorClock>
      known_after_;                    // of a node: what its group knows then
  std::vector<VectorClock> known_to_;  // of a group
  std::vector<int> group_of_;
  std::vector<int> position_;  // of a node in its group, from 1
  std::vector<int> last_of_;   // of a group
  // Last nodes of other groups that the node in question needs, one a group.
  std::vector<int> missing_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_GROUP_KNOWLEDGE_H_
