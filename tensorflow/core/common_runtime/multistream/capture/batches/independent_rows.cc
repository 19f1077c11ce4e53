// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/row_rules.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

// Finds the kind of each tensor of a step, for the step's own batch and for
// more rows side by side.
class Prover {
 public:
  Prover(const Graph& graph, int64_t batch, int64_t rows)
      : step_(graph, absl::StrCat(batch, " rows")),
        padded_(graph, absl::StrCat(rows, " rows")),
        batch_(batch),
        rows_(rows) {}

  // Adds an input of the step.
  absl::Status AddValue(const Node& node, const TensorShape& shape) {
    TF_RETURN_IF_ERROR(AddToBoth(node));
    TensorShape padded = shape;
    const bool is_rows = shape.dims() > 0;
    if (is_rows) padded.set_dim(0, rows_);
    kinds_[&node] = {is_rows ? RowKind::kRows : RowKind::kFixed};
    TF_RETURN_IF_ERROR(step_.SetShape(node, shape));
    return padded_.SetShape(node, padded);
  }
  absl::Status AddVariable(const Node& node, DataType type,
                           const TensorShape& shape) {
    TF_RETURN_IF_ERROR(AddToBoth(node));
    kinds_[&node] = {RowKind::kFixed};
    TF_RETURN_IF_ERROR(step_.SetVariable(node, type, shape));
    return padded_.SetVariable(node, type, shape);
  }

  absl::Status AddOp(const Node& node) {
    std::vector<RowKind> kinds, padded;
    TF_RETURN_IF_ERROR(FindKinds(node, batch_, &step_, &kinds));
    TF_RETURN_IF_ERROR(FindKinds(node, rows_, &padded_, &padded));
    if (kinds != padded) return RefusedPadding(node, "differs for more rows");
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!IsUsed({&node, i})) continue;
      const std::string why = ObstacleInOutput({&node, i}, &kinds[i]);
      if (!why.empty()) return RefusedPadding(node, why);
    }
    kinds_[&node] = std::move(kinds);
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Result(const Node& node) const {
    const Edge* edge;
    TF_RETURN_IF_ERROR(node.input_edge(0, &edge));
    const NodeOutput output = {edge->src(), edge->src_output()};
    const RowKind kind = KindOf(output);
    if (kind != RowKind::kRows && kind != RowKind::kFixed) {
      return RefusedPadding(*output.first,
                            "is a result, and depends on the number of rows");
    }
    return BatchResult{*step_.ShapeOf(output), *padded_.ShapeOf(output),
                       kind == RowKind::kRows};
  }

 private:
  absl::Status AddToBoth(const Node& node) {
    TF_RETURN_IF_ERROR(step_.Add(node));
    return padded_.Add(node);
  }

  absl::Status FindKinds(const Node& node, int64_t batch, SizedStep* step,
                         std::vector<RowKind>* kinds) const {
    TF_RETURN_IF_ERROR(step->Add(node));
    TF_RETURN_IF_ERROR(step->CheckShapes(node));
    const std::string why = KindsOfOutputs(RowOpOf(node, batch, step), kinds);
    return why.empty() ? absl::OkStatus() : RefusedPadding(node, why);
  }

  RowKind KindOf(NodeOutput output) const {
    return kinds_.at(output.first)[output.second];
  }

  RowOp RowOpOf(const Node& node, int64_t batch, SizedStep* step) const {
    const std::vector<NodeOutput> inputs = InputsOf(node);
    RowOp op;
    op.node = &node;
    op.batch = batch;
    for (const NodeOutput& input : inputs) {
      op.input_shapes.push_back(*step->ShapeOf(input));
      op.input_kinds.push_back(KindOf(input));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      op.output_shapes.push_back(step->ShapeOf({&node, i}));
    }
    op.constant = [this, inputs,
                   step](int i) -> std::optional<std::vector<int64_t>> {
      if (KindOf(inputs[i]) != RowKind::kFixed) return std::nullopt;
      return step->IntegersOf(inputs[i]);
    };
    return op;
  }

  // Returns why the output's two shapes contradict its kind, or an empty
  // string. Changes kSizes to kFixed if the value is the same for more rows.
  std::string ObstacleInOutput(NodeOutput output, RowKind* kind) {
    TensorShape shape = *step_.ShapeOf(output);
    TensorShape padded = *padded_.ShapeOf(output);
    switch (*kind) {
      case RowKind::kFixed:
        return shape == padded ? "" : "has another shape for more rows";
      case RowKind::kRows:
        if (shape.dim_size(0) * rows_ != padded.dim_size(0) * batch_) {
          return "does not grow with the batch";
        }
        shape.RemoveDim(0);
        padded.RemoveDim(0);
        return shape == padded ? "" : "grows with the batch in two dimensions";
      case RowKind::kSizes:
        if (IsSameValue(step_.ValueOf(output), padded_.ValueOf(output))) {
          *kind = RowKind::kFixed;
        }
        return "";
      case RowKind::kUnknown:
        break;
    }
    return "";
  }

  SizedStep step_;
  SizedStep padded_;
  const int64_t batch_;
  const int64_t rows_;
  absl::flat_hash_map<const Node*, std::vector<RowKind>> kinds_;
};

}  // namespace

absl::StatusOr<int64_t> IndependentRows::Batch(const StepShapes& shapes) {
  std::optional<int64_t> batch;
  for (const auto* taken : {&shapes.received, &shapes.arguments}) {
    for (const TensorShape& shape : *taken) {
      if (shape.dims() == 0) continue;
      const int64_t rows = shape.dim_size(0);
      if (batch && *batch != rows) {
        return absl::FailedPreconditionError(absl::StrCat(
            "the step takes both ", *batch, " and ", rows, " rows"));
      }
      batch = rows;
    }
  }
  if (!batch || *batch == 0) {
    return absl::FailedPreconditionError("the step takes no rows");
  }
  return *batch;
}

absl::StatusOr<std::vector<BatchResult>> IndependentRows::Pad(
    const StepShapes& shapes, int64_t rows) const {
  TF_ASSIGN_OR_RETURN(const int64_t batch, Batch(shapes));
  if (rows <= batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("not more than ", batch, " rows: ", rows));
  }
  Prover prover(step_.graph, batch, rows);
  TF_RETURN_IF_ERROR(step_.Visit(
      shapes,
      [&](const Node& node, const TensorShape& shape) {
        return prover.AddValue(node, shape);
      },
      [&](const Node& node, DataType type, const TensorShape& shape) {
        return prover.AddVariable(node, type, shape);
      },
      [&](const Node& node) { return prover.AddOp(node); }));
  std::vector<BatchResult> results;
  for (const Node* node : step_.results) {
    TF_ASSIGN_OR_RETURN(results.emplace_back(), prover.Result(*node));
  }
  return results;
}

}  // namespace tensorflow::multistream
