// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a graph that is placed already get another node? With its device.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

// Adds a node, without edges, that is assigned to `device`.
absl::StatusOr<Node*> AddAssigned(NodeDef def, const std::string& device,
                                  Graph* graph);

// Adds the builder's node, asks for `device`, and assigns the node to it.
absl::Status AddAssigned(NodeBuilder& builder, const std::string& device,
                         Graph* graph, Node** node);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_
