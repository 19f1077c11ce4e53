// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A graph and a library of small functions, for tests of function_groups.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

using FDH = FunctionDefHelper;
using Group = std::optional<int>;

// Nodes of functions, on `group` if there is one.
inline FDH::Node WithGroup(FDH::Node node, Group group) {
  if (group.has_value()) node.attr.emplace_back(kStreamGroupAttr, *group);
  return node;
}
inline FDH::Node Square(const std::string& name, Group group = {}) {
  return WithGroup({{name}, "Square", {"x"}, {{"T", DT_FLOAT}}}, group);
}
inline FDH::Node Call(const std::string& name, const std::string& function,
                      Group group = {}) {
  return WithGroup({{name},
                    "PartitionedCall",
                    {"x"},
                    {{"Tin", DataTypeVector{DT_FLOAT}},
                     {"Tout", DataTypeVector{DT_FLOAT}},
                     {"f", FDH::FunctionRef(function)}}},
                   group);
}

class FunctionGroupsTest : public ::testing::Test {
 protected:
  FunctionGroupsTest()
      : library_(OpRegistry::Global()),
        graph_(std::make_unique<Graph>(OpRegistry::Global())) {}

  void Define(const FunctionDef& function) {
    ASSERT_TRUE(library_.AddFunctionDef(function).ok());
    ASSERT_TRUE(graph_->mutable_flib_def()->AddFunctionDef(function).ok());
  }

  Node* Add(NodeBuilder builder, Group group) {
    if (group.has_value()) builder.Attr(kStreamGroupAttr, *group);
    Node* node = nullptr;
    const absl::Status status = builder.Finalize(graph_.get(), &node);
    EXPECT_TRUE(status.ok()) << status;
    return node;
  }
  Node* Constant(const std::string& name) {
    return Add(NodeBuilder(name, "Const")
                   .Attr("dtype", DT_FLOAT)
                   .Attr("value", Tensor(1.0f)),
               {});
  }
  NodeBuilder CallOf(const std::string& name, const std::string& function) {
    return NodeBuilder(name, "PartitionedCall")
        .Input(std::vector<NodeBuilder::NodeOut>{Constant(name + "_x")})
        .Attr("Tout", DataTypeVector({DT_FLOAT}))
        .Attr("f", FDH::FunctionRef(function).proto);
  }
  Node* AddCall(const std::string& name, const std::string& function,
                Group group = {}) {
    return Add(CallOf(name, function), group);
  }
  Node* Find(const std::string& name) {
    for (Node* node : graph_->op_nodes()) {
      if (node->name() == name) return node;
    }
    return nullptr;
  }

  GraphOptimizationPassOptions PassOptions() {
    GraphOptimizationPassOptions options;
    options.graph = &graph_;
    options.flib_def = &library_;
    return options;
  }
  FunctionLibraryDefinition library_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_FUNCTION_GROUPS_FIXTURE_H_
