// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Who says which group a node has that nobody marked? The policies; the rooms
// above say how each of them works.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_

namespace tensorflow {
namespace multistream {

enum class Policy {
  // Free nodes stay in the caller's group.
  kNone,
  // Embedding lookups, with what prepares them and with their gradients
  // (embedding_clusters.h), to the groups with the least to do; the costliest
  // first. A cluster goes to the group of its lookup if that is fixed. All
  // others stay in the caller's group.
  kEmbedding,
  // Nodes that may run at the same time in different groups, with the fewest
  // waits (chain_cover.h). If there are more chains than groups, those that
  // would run at the same time do as far as there are groups. The chain with
  // the most of the longest path stays in the caller's group. A chain goes
  // where its fixed nodes are.
  kFullGraph,
  // The shortest step by its estimate (step_estimate.h), of those of the other
  // policies and of list schedules (list_schedule.h) of 2 groups and more. The
  // one with the fewest groups, if it is nearly as short. What is not clearly
  // shorter than all free nodes in the caller's group is not worth it: kNone.
  kCost,
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_
