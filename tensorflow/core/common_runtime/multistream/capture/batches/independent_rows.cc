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
#include "tensorflow/core/common_runtime/eval_const_tensor.h"
#include "tensorflow/core/common_runtime/graph_runner.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/row_rules.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/common_runtime/shape_refiner.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;
using Output = std::pair<const Node*, int>;

// Axes, paddings and shapes have at most this many elements.
constexpr int64_t kLongestParameter = 256;

absl::Status Refused(const Node& node, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(node.type_string(), " '", node.name(), "' ", why));
}

bool IsUsed(const Node& node, int output) {
  for (const Edge* edge : node.out_edges()) {
    if (edge->src_output() == output) return true;
  }
  return false;
}

// A step with a batch of `batch` rows: the shapes of its tensors, and the
// values that follow from shapes and constants.
class SizedStep {
 public:
  SizedStep(const Graph& graph, int64_t batch)
      : batch_(batch),
        versions_(graph.versions()),
        ops_(*graph.op_registry()),
        runner_(Env::Default()),
        refiner_(versions_, &ops_) {}

  int64_t batch() const { return batch_; }

  // Call for a node's inputs before the node.
  absl::Status Add(const Node& node) {
    const absl::Status status = refiner_.AddNode(&node);
    if (status.ok()) return status;
    const absl::string_view why = status.message();
    return Refused(node, absl::StrCat("has no shape for ", batch_, " rows: ",
                                      why.substr(0, why.find(" for '{{node"))));
  }

  // Set the shape of a step's input or variable.
  absl::Status SetShape(const Node& node, const TensorShape& shape) {
    ShapeHandle handle;
    TF_RETURN_IF_ERROR(
        refiner_.GetContext(&node)->MakeShapeFromTensorShape(shape, &handle));
    return refiner_.SetShape(&node, 0, handle);
  }
  absl::Status SetVariable(const Node& node, DataType type,
                           const TensorShape& shape) {
    InferenceContext* context = refiner_.GetContext(&node);
    ShapeHandle handle;
    TF_RETURN_IF_ERROR(context->MakeShapeFromTensorShape(shape, &handle));
    context->set_output_handle_shapes_and_types(0, {{handle, type}});
    return SetShape(node, TensorShape());
  }

  std::optional<TensorShape> ShapeOf(Output output) const {
    InferenceContext* context = refiner_.GetContext(output.first);
    const ShapeHandle handle = context->output(output.second);
    if (!context->FullyDefined(handle)) return std::nullopt;
    TensorShape shape;
    for (int i = 0; i < context->Rank(handle); ++i) {
      const int64_t size = context->Value(context->Dim(handle, i));
      if (!shape.AddDimWithStatus(size).ok()) return std::nullopt;
    }
    return shape;
  }

  std::optional<Tensor> ValueOf(Output output) {
    const auto known = values_.find(output);
    if (known != values_.end()) return known->second;
    const std::optional<TensorShape> shape = ShapeOf(output);
    if (!shape || shape->num_elements() > kLongestParameter) {
      return std::nullopt;
    }
    const auto find = [this](const Node& node,
                             int index) -> std::optional<Tensor> {
      const auto found = values_.find({&node, index});
      if (found == values_.end()) return std::nullopt;
      return found->second;
    };
    const auto value = EvaluateConstantTensor(
        *output.first, output.second, refiner_, find,
        EvaluateConstantTensorRunner{&ops_, versions_.producer(), &runner_});
    if (!value.ok() || !value->has_value() || (*value)->shape() != *shape) {
      return std::nullopt;
    }
    values_.insert({output, **value});
    return **value;
  }

 private:
  const int64_t batch_;
  const VersionDef versions_;
  const OpRegistryInterface& ops_;
  GraphRunner runner_;
  ShapeRefiner refiner_;
  absl::flat_hash_map<Output, Tensor> values_;
};

bool IsSameValue(const std::optional<Tensor>& a,
                 const std::optional<Tensor>& b) {
  return a && b && a->dtype() == b->dtype() && a->shape() == b->shape() &&
         DataTypeCanUseMemcpy(a->dtype()) &&
         a->tensor_data() == b->tensor_data();
}

// Finds the kind of each tensor of a step, for the step's own batch and for
// more rows side by side.
class Prover {
 public:
  Prover(const Graph& graph, int64_t batch, int64_t rows)
      : step_(graph, batch), padded_(graph, rows) {}

  // Adds an input of the step.
  absl::Status AddValue(const Node& node, const TensorShape& shape) {
    TF_RETURN_IF_ERROR(AddToBoth(node));
    TensorShape padded = shape;
    const bool is_rows = shape.dims() > 0;
    if (is_rows) padded.set_dim(0, padded_.batch());
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
    TF_RETURN_IF_ERROR(FindKinds(node, &step_, &kinds));
    TF_RETURN_IF_ERROR(FindKinds(node, &padded_, &padded));
    if (kinds != padded) return Refused(node, "differs for more rows");
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (!IsUsed(node, i)) continue;
      const std::string why = ObstacleInOutput({&node, i}, &kinds[i]);
      if (!why.empty()) return Refused(node, why);
    }
    kinds_[&node] = std::move(kinds);
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Result(const Node& node) const {
    const Edge* edge;
    TF_RETURN_IF_ERROR(node.input_edge(0, &edge));
    const Output output = {edge->src(), edge->src_output()};
    const RowKind kind = KindOf(output);
    if (kind != RowKind::kRows && kind != RowKind::kFixed) {
      return Refused(*output.first,
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

  absl::Status FindKinds(const Node& node, SizedStep* step,
                         std::vector<RowKind>* kinds) const {
    TF_RETURN_IF_ERROR(step->Add(node));
    for (int i = 0; i < node.num_outputs(); ++i) {
      if ((i == 0 || IsUsed(node, i)) && !step->ShapeOf({&node, i})) {
        return Refused(node, "has a shape that is not known before it runs");
      }
    }
    const std::string why = KindsOfOutputs(RowOpOf(node, step), kinds);
    return why.empty() ? absl::OkStatus() : Refused(node, why);
  }

  RowKind KindOf(Output output) const {
    return kinds_.at(output.first)[output.second];
  }

  RowOp RowOpOf(const Node& node, SizedStep* step) const {
    std::vector<Output> inputs(node.num_inputs());
    for (const Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge()) continue;
      inputs[edge->dst_input()] = {edge->src(), edge->src_output()};
    }
    RowOp op;
    op.node = &node;
    op.batch = step->batch();
    for (const Output& input : inputs) {
      op.input_shapes.push_back(*step->ShapeOf(input));
      op.input_kinds.push_back(KindOf(input));
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      op.output_shapes.push_back(step->ShapeOf({&node, i}));
    }
    op.constant = [this, inputs,
                   step](int i) -> std::optional<std::vector<int64_t>> {
      if (KindOf(inputs[i]) != RowKind::kFixed) return std::nullopt;
      const std::optional<Tensor> value = step->ValueOf(inputs[i]);
      if (!value) return std::nullopt;
      std::vector<int64_t> values(value->NumElements());
      for (size_t k = 0; k < values.size(); ++k) {
        if (value->dtype() == DT_INT32) {
          values[k] = value->flat<int32_t>()(k);
        } else if (value->dtype() == DT_INT64) {
          values[k] = value->flat<int64_t>()(k);
        } else {
          return std::nullopt;
        }
      }
      return values;
    };
    return op;
  }

  // Returns why the output's two shapes contradict its kind, or an empty
  // string. Changes kSizes to kFixed if the value is the same for more rows.
  std::string ObstacleInOutput(Output output, RowKind* kind) {
    TensorShape shape = *step_.ShapeOf(output);
    TensorShape padded = *padded_.ShapeOf(output);
    switch (*kind) {
      case RowKind::kFixed:
        return shape == padded ? "" : "has another shape for more rows";
      case RowKind::kRows:
        if (shape.dim_size(0) * padded_.batch() !=
            padded.dim_size(0) * step_.batch()) {
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
  absl::flat_hash_map<const Node*, std::vector<RowKind>> kinds_;
};

}  // namespace

IndependentRows::IndependentRows(const Graph& graph)
    : graph_(graph.flib_def()) {
  graph_.Copy(graph);
  absl::flat_hash_map<absl::string_view, const Node*> copies;
  for (const Node* node : graph_.op_nodes()) copies[node->name()] = node;
  std::vector<const Node*> sends, returns;
  for (const Node* original : graph.op_nodes()) {
    const Node* node = copies.at(original->name());
    if (node->IsRecv()) received_.push_back(node);
    if (node->IsArg()) arguments_.push_back(node);
    if (node->type_string() == "VarHandleOp" ||
        (node->IsArg() && node->output_type(0) == DT_RESOURCE)) {
      variables_.push_back(node);
    }
    if (node->IsSend() && !PassesArgumentOn(*node)) sends.push_back(node);
    if (node->IsRetval()) returns.push_back(node);
  }
  results_ = sends;
  results_.insert(results_.end(), returns.begin(), returns.end());
  ReverseDFSFrom(
      graph_, results_, /*enter=*/nullptr,
      [this](const Node* node) {
        if (!node->IsSend() && !node->IsRetval()) needed_.push_back(node);
      },
      /*stable_comparator=*/nullptr,
      [](const Edge& edge) { return !edge.IsControlEdge(); });
}

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
  if (rows <= batch || shapes.received.size() != received_.size() ||
      shapes.arguments.size() != arguments_.size() ||
      shapes.variables.size() != variables_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not the shapes of the graph, or not more than ", batch,
                     " rows: ", rows));
  }
  absl::flat_hash_map<const Node*, const TensorShape*> values;
  for (size_t i = 0; i < received_.size(); ++i) {
    values[received_[i]] = &shapes.received[i];
  }
  for (size_t i = 0; i < arguments_.size(); ++i) {
    values[arguments_[i]] = &shapes.arguments[i];
  }
  absl::flat_hash_map<const Node*, const std::pair<DataType, TensorShape>*>
      variables;
  for (size_t i = 0; i < variables_.size(); ++i) {
    variables[variables_[i]] = &shapes.variables[i];
  }
  Prover prover(graph_, batch, rows);
  for (const Node* node : needed_) {
    if (const auto it = variables.find(node); it != variables.end()) {
      const auto& [type, shape] = *it->second;
      TF_RETURN_IF_ERROR(prover.AddVariable(*node, type, shape));
    } else if (const auto it = values.find(node); it != values.end()) {
      TF_RETURN_IF_ERROR(prover.AddValue(*node, *it->second));
    } else {
      TF_RETURN_IF_ERROR(prover.AddOp(*node));
    }
  }
  std::vector<BatchResult> results;
  for (const Node* node : results_) {
    TF_ASSIGN_OR_RETURN(results.emplace_back(), prover.Result(*node));
  }
  return results;
}

TensorShape Padding::Padded(const TensorShape& shape) const {
  TensorShape padded = shape;
  if (padded.dims() > 0) padded.set_dim(0, rows);
  return padded;
}

Paddings::Paddings(const Graph& graph, std::vector<int> batches)
    : rows_(graph), batches_(std::move(batches)) {}

std::shared_ptr<const Padding> Paddings::Of(std::string key,
                                            const StepShapes& shapes) {
  for (const auto& [type, shape] : shapes.variables) {
    absl::StrAppend(&key, static_cast<int>(type), shape.DebugString());
  }
  {
    absl::MutexLock lock(&mu_);
    if (const auto found = known_.find(key); found != known_.end()) {
      return found->second;
    }
  }
  std::shared_ptr<const Padding> made = NewPadding(shapes);
  absl::MutexLock lock(&mu_);
  if (known_.size() >= kMostShapes) known_.clear();
  return known_.try_emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const Padding> Paddings::NewPadding(
    const StepShapes& shapes) const {
  auto padding = std::make_shared<Padding>();
  padding->variables = shapes.variables;
  const absl::StatusOr<int64_t> batch = IndependentRows::Batch(shapes);
  absl::Status status = batch.status();
  if (status.ok()) {
    const auto next =
        std::lower_bound(batches_.begin(), batches_.end(), *batch);
    if (next == batches_.end() || *next == *batch) return nullptr;
    padding->rows = *next;
    auto results = rows_.Pad(shapes, padding->rows);
    status = results.status();
    if (status.ok()) padding->results = *std::move(results);
  }
  if (!status.ok()) {
    padding->why_not =
        absl::StrCat("its batch is not padded: ", status.message());
    LOG_FIRST_N(WARNING, 10)
        << "Multi-stream: " << kCaptureBatchesVariable
        << " has no effect on a step: " << status.message();
  }
  return padding;
}

}  // namespace tensorflow::multistream
