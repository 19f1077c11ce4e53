// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a graph that is placed already get another node? With its device.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

// Adds a node, without edges, that is assigned to `device`.
absl::StatusOr<Node*> AddAssigned(NodeDef def, const std::string& device,
                                  Graph* graph);

// Adds the builder's node, asks for `device`, and assigns the node to it.
absl::Status AddAssigned(NodeBuilder& builder, const std::string& device,
                         Graph* graph, Node** node);

// Adds such nodes, all of one device, with names in one scope.
class AssignedNodes {
 public:
  AssignedNodes(std::string scope, std::string device, Graph* graph)
      : scope_(std::move(scope)), device_(std::move(device)), graph_(*graph) {}

  // The graph's own nodes may have any other names.
  std::string NewName(absl::string_view what) const {
    return graph_.NewName(absl::StrCat(scope_, "/", what));
  }
  NodeBuilder New(const char* op) const { return {NewName(op), op}; }
  // nullptr after an error, also an earlier one.
  Node* Add(NodeBuilder& builder) {
    Node* node = nullptr;
    if (status_.ok()) status_ = AddAssigned(builder, device_, &graph_, &node);
    return status_.ok() ? node : nullptr;
  }
  // `op` is Const, or HostConst.
  Node* Constant(const char* op, const Tensor& value) {
    return Add(New(op).Attr("dtype", value.dtype()).Attr("value", value));
  }
  // The first error.
  const absl::Status& status() const { return status_; }

 private:
  const std::string scope_;
  const std::string device_;
  Graph& graph_;
  absl::Status status_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ASSIGNED_NODES_H_
