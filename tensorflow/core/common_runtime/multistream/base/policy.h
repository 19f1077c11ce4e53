// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which policies give groups to nodes without marks (free nodes)? node_level/
// implements them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_

namespace tensorflow {
namespace multistream {

enum class Policy {
  // Free nodes stay in the caller's group.
  kNone,
  // Clusters of an embedding lookup, the ops that prepare it and its gradients
  // (embedding_clusters.h) go to the least loaded groups, the costliest cluster
  // first. If a mark fixes the lookup's group, the cluster follows. All other
  // nodes stay in the caller's group.
  kEmbedding,
  // Nodes that can run at the same time go to different groups, with the fewest
  // waits: each chain of a chain cover (chain_cover.h) to one group. With more
  // chains than groups, chains that would overlap in time are kept apart as far
  // as possible. The chain with most of the longest path stays in the caller's
  // group. A chain with marked nodes goes to their group.
  kFullGraph,
  // The plan with the shortest estimated step (step_estimate.h), of the other
  // policies' plans and list schedules (list_schedule.h) of 2 and more groups.
  // Of plans that are nearly as short, the one with the fewest groups. If no
  // plan is clearly shorter than kNone's, kNone's plan is used.
  kCost,
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_POLICY_H_
