// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups end a step soonest, if its nodes are placed one by one?
//
// List scheduling in the spirit of HEFT (Topcuoglu et al., 2002): nodes in the
// order of the longest path from them to the end, waits included, each to the
// group where it ends first, after the waits that it needs there.
//
// That gives a wait no weight beyond the node's own delay. Where all groups are
// busy, it delays the others too, and a node had better stay with its inputs:
// there, a weight above 1 makes shorter steps.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow {
namespace multistream {

// A group for each node. Free nodes are only given to `groups`, of which a node
// gets the first where several are as good. `groups` is not empty. Groups are
// compared as if a wait took `wait_weight` times as long as it does.
std::vector<int> ListSchedule(const PolicyGraph& graph,
                              const PolicyOptions& options,
                              const std::vector<int>& groups,
                              double wait_weight);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_LIST_SCHEDULE_H_
