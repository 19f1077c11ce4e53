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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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

// One output of a padded step.
struct SizedResult {
  TensorShape shape;   // for the step's own size
  TensorShape padded;  // with the padding
  // The padded result consists of so many blocks of equal size, each of which
  // begins with what belongs to the step. 0: the result does not depend on what
  // is padded.
  int64_t blocks = 0;
};

// A copy of a step's graph, and its nodes.
struct StepNodes {
  explicit StepNodes(const Graph& graph);
  StepNodes(const StepNodes&) = delete;
  StepNodes& operator=(const StepNodes&) = delete;

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

// A proof that a step may be padded: finds what each tensor is, for the step's
// own size and for the padded one side by side.
class PaddingProver {
 public:
  virtual ~PaddingProver() = default;

  // The results of `step`: sends, returns, then checks. InvalidArgument if
  // there are not as many shapes as inputs.
  absl::StatusOr<std::vector<SizedResult>> Prove(const StepNodes& step,
                                                 const StepShapes& shapes);

 protected:
  // `own` and `padded` say which sizes these are.
  PaddingProver(const Graph& graph, std::string own, std::string padded)
      : step_(graph, std::move(own)), padded_(graph, std::move(padded)) {}

  // Notes an input that has `shape`. Returns its shape with the padding.
  virtual TensorShape AddValue(const Node& node, TensorShape shape) = 0;
  virtual void AddVariable(const Node& node) = 0;
  virtual absl::Status AddOp(const Node& node) = 0;
  virtual absl::StatusOr<SizedResult> Result(NodeOutput output) const = 0;
  absl::Status AddToBoth(const Node& node);

  SizedStep step_;
  SizedStep padded_;
};

// Whether both values are known, and are the same.
bool IsSameValue(const std::optional<Tensor>& a,
                 const std::optional<Tensor>& b);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_BATCHES_SIZED_STEP_H_
