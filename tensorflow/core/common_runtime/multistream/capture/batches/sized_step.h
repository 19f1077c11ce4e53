// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A step's tensors have which shapes, if its inputs have these, and which
// values follow from them? The proofs that a step may be padded ask for two
// sizes side by side.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_SIZED_STEP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_SIZED_STEP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/graph_runner.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// The shapes of a step's inputs, each list in the order of Capturable.
struct StepShapes {
  std::vector<TensorShape> received;
  std::vector<TensorShape> arguments;  // a variable handle's is ignored
  std::vector<std::pair<DataType, TensorShape>> variables;  // as they are now
};

// A copy of a step's graph, and its nodes.
struct StepNodes {
  explicit StepNodes(const Graph& graph);
  StepNodes(const StepNodes&) = delete;
  StepNodes& operator=(const StepNodes&) = delete;

  // Visits the nodes that the results need, inputs first. InvalidArgument if
  // there are not as many shapes as inputs.
  absl::Status Visit(
      const StepShapes& shapes,
      absl::FunctionRef<absl::Status(const Node&, const TensorShape&)> value,
      absl::FunctionRef<absl::Status(const Node&, DataType, const TensorShape&)>
          variable,
      absl::FunctionRef<absl::Status(const Node&)> op) const;

  Graph graph;
  // The first three lists are in the order of Capturable.
  std::vector<const Node*> received;
  std::vector<const Node*> arguments;
  std::vector<const Node*> variables;
  std::vector<const Node*> results;  // sends, returns, then checks
  std::vector<const Node*> needed;   // inputs first; without results
};

using NodeOutput = std::pair<const Node*, int>;

// The tensors that a node takes, without control inputs.
std::vector<NodeOutput> InputsOf(const Node& node);
bool IsUsed(NodeOutput output);
// FailedPrecondition: "MatMul 'name' `why`".
absl::Status RefusedPadding(const Node& node, absl::string_view why);

class SizedStep {
 public:
  // `sizes` says which sizes these are, for errors: "4 rows".
  SizedStep(const Graph& graph, std::string sizes);

  // Call for a node's inputs before the node.
  absl::Status Add(const Node& node);
  // Set the shape of a step's input or variable, after Add.
  absl::Status SetShape(const Node& node, const TensorShape& shape);
  absl::Status SetVariable(const Node& node, DataType type,
                           const TensorShape& shape);

  std::optional<TensorShape> ShapeOf(NodeOutput output) const;
  // An error if a shape that is needed is not known before the node runs.
  absl::Status CheckShapes(const Node& node) const;
  std::optional<Tensor> ValueOf(NodeOutput output);
  // The value, if it is integers.
  std::optional<std::vector<int64_t>> IntegersOf(NodeOutput output);

 private:
  const std::string sizes_;
  const VersionDef versions_;
  const OpRegistryInterface& ops_;
  GraphRunner runner_;
  ShapeRefiner refiner_;
  absl::flat_hash_map<NodeOutput, Tensor> values_;
};

// Whether both values are known, and are the same.
bool IsSameValue(const std::optional<Tensor>& a,
                 const std::optional<Tensor>& b);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_SIZED_STEP_H_
