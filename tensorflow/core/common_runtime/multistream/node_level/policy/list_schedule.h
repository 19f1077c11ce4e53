// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups end a step soonest, if its nodes are placed one by one?
//
// List scheduling in the spirit of HEFT (Topcuoglu et al., 2002): nodes in the
// order of the longest path from them to the end, waits included, each to the
// group where it ends first, after the waits that it needs there.
//
// List scheduling counts a wait only as a delay of its own node. Where all
// groups are busy, a wait delays other nodes too, and a node had better stay
// with its inputs: there, a weight above 1 makes shorter steps.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// Returns a group for each node. Free nodes only go to `groups`, which is not
// empty; of equally good groups to the first. Groups are compared as if a wait
// took `wait_weight` times as long as it does.
std::vector<int> ListSchedule(const PolicyGraph& graph,
                              const PolicyOptions& options,
                              const std::vector<int>& groups,
                              double wait_weight);

// Moves free nodes, alone or as a small piece among other groups, to the group
// of most of their neighbours, if the estimated step becomes shorter, or has
// fewer waits and does not become longer.
std::vector<int> SaveWaits(const PolicyGraph& graph,
                           const PolicyOptions& options,
                           std::vector<int> groups);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_
