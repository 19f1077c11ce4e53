// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/batches/sized_step.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/eval_const_tensor.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow::multistream {
namespace {

using shape_inference::InferenceContext;
using shape_inference::ShapeHandle;

// Axes, paddings, shapes and positions have at most this many elements.
constexpr int64_t kLongestParameter = 4096;

}  // namespace

StepNodes::StepNodes(const Graph& original) : graph(original.flib_def()) {
  graph.Copy(original);
  absl::flat_hash_map<absl::string_view, const Node*> copies;
  for (const Node* node : graph.op_nodes()) copies[node->name()] = node;
  std::vector<const Node*> returns, checks;
  for (const Node* each : original.op_nodes()) {
    const Node* node = copies.at(each->name());
    if (node->IsRecv()) received.push_back(node);
    if (node->IsArg()) arguments.push_back(node);
    if (node->type_string() == "VarHandleOp" ||
        (node->IsArg() && node->output_type(0) == DT_RESOURCE)) {
      variables.push_back(node);
    }
    if (IsCheck(*node)) {
      checks.push_back(node);
    } else if (node->IsSend() && !PassesArgumentOn(*node)) {
      results.push_back(node);
    }
    if (node->IsRetval()) returns.push_back(node);
  }
  results.insert(results.end(), returns.begin(), returns.end());
  results.insert(results.end(), checks.begin(), checks.end());
  ReverseDFSFrom(
      graph, results, /*enter=*/nullptr,
      [this](const Node* node) {
        if (!node->IsSend() && !node->IsRetval()) needed.push_back(node);
      },
      /*stable_comparator=*/nullptr,
      [](const Edge& edge) { return !edge.IsControlEdge(); });
}

std::vector<NodeOutput> InputsOf(const Node& node) {
  std::vector<NodeOutput> inputs(node.num_inputs());
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge()) continue;
    inputs[edge->dst_input()] = {edge->src(), edge->src_output()};
  }
  return inputs;
}

bool IsUsed(NodeOutput output) {
  for (const Edge* edge : output.first->out_edges()) {
    if (edge->src_output() == output.second) return true;
  }
  return false;
}

absl::Status RefusedPadding(const Node& node, absl::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat(node.type_string(), " '", node.name(), "' ", why));
}

SizedStep::SizedStep(const Graph& graph, std::string sizes)
    : sizes_(std::move(sizes)),
      versions_(graph.versions()),
      ops_(*graph.op_registry()),
      runner_(Env::Default()),
      refiner_(versions_, &ops_) {}

absl::Status SizedStep::Add(const Node& node) {
  const absl::Status status = refiner_.AddNode(&node);
  if (status.ok()) return status;
  const absl::string_view why = status.message();
  return RefusedPadding(node,
                        absl::StrCat("has no shape for ", sizes_, ": ",
                                     why.substr(0, why.find(" for '{{node"))));
}

absl::Status SizedStep::SetShape(const Node& node, const TensorShape& shape) {
  ShapeHandle handle;
  TF_RETURN_IF_ERROR(
      refiner_.GetContext(&node)->MakeShapeFromTensorShape(shape, &handle));
  return refiner_.SetShape(&node, 0, handle);
}

absl::Status SizedStep::SetVariable(const Node& node, DataType type,
                                    const TensorShape& shape) {
  InferenceContext* context = refiner_.GetContext(&node);
  ShapeHandle handle;
  TF_RETURN_IF_ERROR(context->MakeShapeFromTensorShape(shape, &handle));
  context->set_output_handle_shapes_and_types(0, {{handle, type}});
  return SetShape(node, TensorShape());
}

std::optional<TensorShape> SizedStep::ShapeOf(NodeOutput output) const {
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

absl::Status SizedStep::CheckShapes(const Node& node) const {
  for (int i = 0; i < node.num_outputs(); ++i) {
    if ((i == 0 || IsUsed({&node, i})) && !ShapeOf({&node, i})) {
      return RefusedPadding(node,
                            "has a shape that is not known before it runs");
    }
  }
  return absl::OkStatus();
}

std::optional<Tensor> SizedStep::ValueOf(NodeOutput output) {
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

std::optional<std::vector<int64_t>> SizedStep::IntegersOf(NodeOutput output) {
  const std::optional<Tensor> value = ValueOf(output);
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
}

absl::Status PaddingProver::AddToBoth(const Node& node) {
  TF_RETURN_IF_ERROR(step_.Add(node));
  return padded_.Add(node);
}

absl::StatusOr<std::vector<SizedResult>> PaddingProver::Prove(
    const StepNodes& step, const StepShapes& shapes) {
  if (shapes.received.size() != step.received.size() ||
      shapes.arguments.size() != step.arguments.size() ||
      shapes.variables.size() != step.variables.size()) {
    return absl::InvalidArgumentError("not the shapes of the graph");
  }
  absl::flat_hash_map<const Node*, TensorShape> values;
  for (size_t i = 0; i < step.received.size(); ++i) {
    values[step.received[i]] = shapes.received[i];
  }
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    values[step.arguments[i]] = shapes.arguments[i];
  }
  absl::flat_hash_map<const Node*, std::pair<DataType, TensorShape>> variables;
  for (size_t i = 0; i < step.variables.size(); ++i) {
    variables[step.variables[i]] = shapes.variables[i];
  }
  // What the results need, inputs first.
  for (const Node* node : step.needed) {
    if (const auto it = variables.find(node); it != variables.end()) {
      TF_RETURN_IF_ERROR(AddToBoth(*node));
      AddVariable(*node);
      const auto& [type, shape] = it->second;
      TF_RETURN_IF_ERROR(step_.SetVariable(*node, type, shape));
      TF_RETURN_IF_ERROR(padded_.SetVariable(*node, type, shape));
    } else if (const auto it = values.find(node); it != values.end()) {
      TF_RETURN_IF_ERROR(AddToBoth(*node));
      const TensorShape padded = AddValue(*node, it->second);
      TF_RETURN_IF_ERROR(step_.SetShape(*node, it->second));
      TF_RETURN_IF_ERROR(padded_.SetShape(*node, padded));
    } else {
      TF_RETURN_IF_ERROR(AddOp(*node));
    }
  }
  std::vector<SizedResult> results;
  for (const Node* node : step.results) {
    TF_ASSIGN_OR_RETURN(results.emplace_back(), Result(InputsOf(*node)[0]));
  }
  return results;
}

bool IsSameValue(const std::optional<Tensor>& a,
                 const std::optional<Tensor>& b) {
  return a && b && a->dtype() == b->dtype() && a->shape() == b->shape() &&
         DataTypeCanUseMemcpy(a->dtype()) &&
         a->tensor_data() == b->tensor_data();
}

}  // namespace tensorflow::multistream
