// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"

#include <utility>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {

absl::StatusOr<Node*> AddAssigned(NodeDef def, const std::string& device,
                                  Graph* graph) {
  absl::Status status;
  Node* added = graph->AddNode(std::move(def), &status);
  TF_RETURN_IF_ERROR(status);
  added->set_assigned_device_name(device);
  return added;
}

absl::Status AddAssigned(NodeBuilder& builder, const std::string& device,
                         Graph* graph, Node** node) {
  TF_RETURN_IF_ERROR(builder.Device(device).Finalize(graph, node));
  (*node)->set_assigned_device_name(device);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
