// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/row_proofs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

// The most combinations of shapes in the cache, which is cleared when full.
constexpr size_t kMostShapes = 4096;

absl::Status Refused(std::string why) {
  return absl::FailedPreconditionError(std::move(why));
}

int IndexOf(const Node& node) {
  int index = -1;
  TryGetNodeAttr(node.attrs(), "index", &index);
  return index;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DirectFunction::RowProofs>>
DirectFunction::RowProofs::Make(const DirectFunction& function) {
  const FunctionLibraryDefinition& library =
      *function.device_->GetFunctionLibraryDefinition();
  Graph host(library), part(library);
  CopyGraph(*function.host_graph_, &host);
  CopyGraph(*function.device_graph_, &part);
  // Without capture the values that the host sends early are not marked yet.
  MarkEarlyValues({&host, &part});
  const ValuesOnDevice values = PutValuesOnDevice(part);
  if (!values.obstacle.empty()) return Refused(values.obstacle);
  const Graph& graph = values.graph == nullptr ? part : *values.graph;
  const Capturable capturable = ClassifyForCapture(graph, &library);
  if (!capturable.obstacle.empty()) return Refused(capturable.obstacle);
  if (capturable.changes_variables) {
    return Refused("the function changes variables");
  }
  if (!capturable.draws.empty()) {
    return Refused(absl::StrCat(capturable.draws[0], " draws random numbers"));
  }
  std::unique_ptr<RowProofs> made(new RowProofs(function, graph));
  TF_RETURN_IF_ERROR(made->Look());
  return made;
}

absl::StatusOr<DirectFunction::RowProofs::Input>
DirectFunction::RowProofs::InputOf(const Source& source) const {
  if (source.argument >= 0 && source.argument < function_.count_) {
    return Input{source.argument};
  }
  // IndependentRows takes each input that is no scalar for rows.
  const Tensor& value =
      source.argument < 0
          ? source.constant
          : function_.captures_[source.argument - function_.count_].value;
  if (value.dims() > 0) {
    return Refused(
        "the function takes a tensor that is neither an argument nor a "
        "variable");
  }
  return Input{};
}

absl::Status DirectFunction::RowProofs::Look() {
  for (const Node* node : nodes_.received) {
    const auto source = function_.received_.find(TensorNameOf(*node));
    if (source == function_.received_.end()) {
      return Refused(absl::StrCat(node->name(), " is not from the host"));
    }
    TF_ASSIGN_OR_RETURN(received_.emplace_back(), InputOf(source->second));
  }
  for (const Node* node : nodes_.arguments) {
    Input& input = arguments_.emplace_back();
    if (node->output_type(0) == DT_RESOURCE) continue;
    Source source;
    source.argument = function_.arguments_[IndexOf(*node)];
    TF_ASSIGN_OR_RETURN(input, InputOf(source));
  }
  for (const Node* node : nodes_.variables) {
    if (!node->IsArg()) {
      return Refused(absl::StrCat(node->name(), " is not captured"));
    }
    variables_.push_back(function_.arguments_[IndexOf(*node)] -
                         function_.count_);
  }
  for (const Source& result : function_.results_) {
    if (result.sent < 0) {
      return Refused("a result is an argument, or a constant");
    }
    const auto output = absl::c_find_if(nodes_.results, [&](const Node* node) {
      if (!node->IsSend()) return false;
      const auto sent = function_.sent_.find(TensorNameOf(*node));
      return sent != function_.sent_.end() && sent->second == result.sent;
    });
    if (output == nodes_.results.end()) {
      return Refused("a result is an argument, or a constant");
    }
    outputs_.push_back(static_cast<int>(output - nodes_.results.begin()));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepShapes> DirectFunction::RowProofs::ShapesOf(
    const std::vector<TensorShape>& arguments) const {
  const auto shape_of = [&](const Input& input) {
    return input.argument < 0 ? TensorShape() : arguments[input.argument];
  };
  StepShapes shapes;
  for (const Input& input : received_) {
    shapes.received.push_back(shape_of(input));
  }
  for (const Input& input : arguments_) {
    shapes.arguments.push_back(shape_of(input));
  }
  Device* const device = function_.device_->device();
  for (const int capture : variables_) {
    const auto handles = HandlesOf(function_.captures_[capture].value);
    const core::RefCountPtr<Var> variable =
        handles.size() == 1
            ? VariableOf(handles[0], device->resource_manager(), device->name())
            : nullptr;
    if (variable == nullptr) {
      return Refused("the function takes a resource that is no variable");
    }
    tf_shared_lock lock(*variable->mu());
    shapes.variables.emplace_back(variable->tensor()->dtype(),
                                  variable->tensor()->shape());
  }
  return shapes;
}

absl::StatusOr<std::vector<bool>> DirectFunction::RowProofs::Prove(
    const StepShapes& shapes, int64_t rows) const {
  TF_ASSIGN_OR_RETURN(const std::vector<SizedResult> found,
                      rows_.Pad(shapes, rows));
  std::vector<bool> in_rows;
  for (const int output : outputs_) in_rows.push_back(found[output].blocks > 0);
  return in_rows;
}

absl::StatusOr<std::vector<bool>> DirectFunction::RowProofs::RowsOf(
    const std::vector<TensorShape>& arguments, int64_t rows) {
  TF_ASSIGN_OR_RETURN(const StepShapes shapes, ShapesOf(arguments));
  std::string key = absl::StrCat(rows);
  const auto add = [&key](const TensorShape& shape) {
    absl::StrAppend(&key, "[");
    for (const int64_t size : shape.dim_sizes()) {
      absl::StrAppend(&key, size, ",");
    }
  };
  for (const TensorShape& shape : arguments) add(shape);
  for (const auto& [type, shape] : shapes.variables) {
    absl::StrAppend(&key, static_cast<int>(type));
    add(shape);
  }
  {
    absl::MutexLock lock(&mu_);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
  }
  const absl::StatusOr<std::vector<bool>> proved = Prove(shapes, rows);
  absl::MutexLock lock(&mu_);
  if (known_.size() >= kMostShapes) known_.clear();
  known_.emplace(std::move(key), proved);
  return proved;
}

absl::StatusOr<std::vector<bool>> DirectFunction::RowsOf(
    const std::vector<TensorShape>& shapes, int64_t rows) const {
  absl::call_once(made_row_proofs_,
                  [this] { row_proofs_ = RowProofs::Make(*this); });
  if (!row_proofs_.ok()) return row_proofs_.status();
  return (*row_proofs_)->RowsOf(shapes, rows);
}

}  // namespace tensorflow::multistream
