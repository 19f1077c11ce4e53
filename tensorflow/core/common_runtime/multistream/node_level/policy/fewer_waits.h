// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes may go to the group of their neighbours, to save waits?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_FEWER_WAITS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_FEWER_WAITS_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/policy_graph.h"

namespace tensorflow::multistream {

// Moves free nodes, alone or as a small piece among other groups, to the group
// of most of their neighbours, if the estimated step becomes shorter, or has
// fewer waits and does not become longer.
std::vector<int> SaveWaits(const PolicyGraph& graph,
                           const PolicyOptions& options,
                           std::vector<int> groups);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_POLICY_FEWER_WAITS_H_
