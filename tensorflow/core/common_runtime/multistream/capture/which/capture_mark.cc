// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph_node_util.h"

namespace tensorflow::multistream {
namespace {

// Collects marks and keeps the strongest: CaptureMode is sorted by strength,
// and nullopt is less than every mode.
class Marks {
 public:
  explicit Marks(const FunctionLibraryDefinition& library)
      : library_(library) {}

  template <class Attributes>  // of a node or an argument, by name
  absl::Status Add(const std::string& name, const Attributes& attributes) {
    const auto mark = attributes.find(kCaptureAttr);
    if (mark == attributes.end()) return absl::OkStatus();
    const std::optional<CaptureMode> mode = CaptureModeOfName(mark->second.s());
    if (!mode || *mode == CaptureMode::kMarked ||
        *mode == CaptureMode::kInference) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' has ", kCaptureAttr, "=\"",
                       mark->second.s(), "\": it takes off, auto or require"));
    }
    found = std::max(found, mode);
    return absl::OkStatus();
  }

  absl::Status AddNode(const NodeDef& node) {
    absl::Status status = Add(node.name(), node.attr());
    status.Update(AddFunction(node.op()));
    for (const auto& [name, value] : node.attr()) {
      if (value.has_func()) status.Update(AddFunction(value.func().name()));
      for (const NameAttrList& function : value.list().func()) {
        status.Update(AddFunction(function.name()));
      }
    }
    return status;
  }

  std::optional<CaptureMode> found;

 private:
  absl::Status AddFunction(const std::string& name) {
    const FunctionDef* function = library_.Find(name);
    if (function == nullptr || !seen_.insert(name).second) {
      return absl::OkStatus();
    }
    absl::Status status;
    for (const auto& [index, attributes] : function->arg_attr()) {
      status.Update(Add(name, attributes.attr()));
    }
    for (const NodeDef& node : function->node_def()) {
      status.Update(AddNode(node));
    }
    return status;
  }

  const FunctionLibraryDefinition& library_;
  absl::flat_hash_set<std::string> seen_;
};

bool IsEnd(const Node& node) {
  return node.IsArg() || node.IsRetval() || node.IsSend() || node.IsRecv();
}

void MarkEnds(CaptureMode mode, Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (!IsEnd(*node)) continue;
    node->ClearAttr(kCaptureAttr);
    node->AddAttr(kCaptureAttr, NameOf(mode));
  }
}

}  // namespace

absl::Status MarkArgumentsAndResults(const FunctionLibraryDefinition& library,
                                     Graph* graph) {
  Marks marks(library);
  for (const Node* node : graph->op_nodes()) {
    absl::Status status = marks.AddNode(node->def());
    if (!status.ok()) return status;
  }
  if (marks.found) MarkEnds(*marks.found, graph);
  return absl::OkStatus();
}

void MarkParts(absl::Span<Graph* const> parts) {
  std::optional<CaptureMode> found;
  for (const Graph* part : parts) {
    found = std::max(found, CaptureMarkOf(*part));
  }
  if (!found) return;
  for (Graph* part : parts) MarkEnds(*found, part);
}

std::optional<CaptureMode> CaptureMarkOf(const Graph& graph) {
  std::optional<CaptureMode> found;
  for (const Node* node : graph.op_nodes()) {
    std::string name;
    if (!IsEnd(*node) || !TryGetNodeAttr(node->attrs(), kCaptureAttr, &name)) {
      continue;
    }
    found = std::max(found, CaptureModeOfName(name));
  }
  return found;
}

std::string WhyNothingIsCaptured() {
  // TensorFlow's: ops whose inputs and outputs it prints.
  constexpr char kVariable[] = "TF_GPU_DEBUG_OPS_TO_LOG";
  const char* const ops = std::getenv(kVariable);
  return ops == nullptr || *ops == '\0'
             ? ""
             : absl::StrCat("with ", kVariable,
                            " TensorFlow waits for the GPU in ops");
}

}  // namespace tensorflow::multistream
