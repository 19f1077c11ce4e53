// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/row_rules.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

// Finds the kind of each tensor of a step, for the step's own batch and for
// more rows side by side.
class Prover : public PaddingProver {
 public:
  Prover(const Graph& graph, int64_t batch, int64_t rows)
      : PaddingProver(graph, absl::StrCat(batch, " rows"),
                      absl::StrCat(rows, " rows")),
        batch_(batch),
        rows_(rows) {}

 private:
  TensorShape AddValue(const Node& node, TensorShape shape) override {
    const bool is_rows = shape.dims() > 0;
    if (is_rows) shape.set_dim(0, rows_);
    kinds_[&node] = {is_rows ? RowKind::kRows : RowKind::kFixed};
    return shape;
  }
  void AddVariable(const Node& node) override {
    kinds_[&node] = {RowKind::kFixed};
  }

  absl::Status AddOp(const Node& node) override {
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

  absl::StatusOr<SizedResult> Result(NodeOutput output) const override {
    const RowKind kind = KindOf(output);
    if (kind != RowKind::kRows && kind != RowKind::kFixed) {
      return RefusedPadding(*output.first,
                            "is a result, and depends on the number of rows");
    }
    return SizedResult{*step_.ShapeOf(output), *padded_.ShapeOf(output),
                       /*blocks=*/kind == RowKind::kRows ? 1 : 0};
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

absl::StatusOr<std::vector<SizedResult>> IndependentRows::Pad(
    const StepShapes& shapes, int64_t rows) const {
  TF_ASSIGN_OR_RETURN(const int64_t batch, Batch(shapes));
  if (rows <= batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("not more than ", batch, " rows: ", rows));
  }
  return Prover(step_.graph, batch, rows).Prove(step_, shapes);
}

}  // namespace tensorflow::multistream
