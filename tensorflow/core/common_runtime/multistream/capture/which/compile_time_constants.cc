// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/compile_time_constants.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "tensorflow/compiler/tf2xla/const_analysis.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace multistream {
namespace {

// Ops whose results depend only on their inputs' shapes.
bool GivesShape(const Node& node) {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "Rank", "Shape", "ShapeN", "Size"};
  return ops->contains(node.type_string());
}

}  // namespace

absl::StatusOr<std::vector<int>> CompileTimeConstants(
    const NameAttrList& function, const FunctionLibraryDefinition& library) {
  // No device needed: the runtime only builds the graphs of functions.
  const ProcessFunctionLibraryRuntime process(
      /*device_mgr=*/nullptr, Env::Default(), /*config=*/nullptr,
      TF_GRAPH_DEF_VERSION, &library, OptimizerOptions());
  FunctionLibraryRuntime* runtime =
      process.GetFLR(ProcessFunctionLibraryRuntime::kDefaultFLRDevice);
  FunctionLibraryRuntime::Handle handle;
  TF_RETURN_IF_ERROR(runtime->Instantiate(
      function.name(), AttrSlice(&function.attr()), &handle));
  const FunctionBody* body = runtime->GetFunctionBody(handle);
  if (body == nullptr) return absl::InternalError("a function has no graph");
  std::vector<bool> constant(body->arg_types.size());
  TF_RETURN_IF_ERROR(BackwardsConstAnalysis(
      *body->graph, &constant, /*compile_time_const_nodes=*/nullptr, runtime));
  std::vector<int> indices;
  for (size_t i = 0; i < constant.size(); ++i) {
    if (constant[i]) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

bool IsDecidedByShapes(const Node& node) {
  absl::flat_hash_set<const Node*> seen = {&node};
  std::vector<const Node*> left = {&node};
  while (!left.empty()) {
    const Node* next = left.back();
    left.pop_back();
    if (GivesShape(*next)) continue;
    if (next->num_inputs() == 0 && !next->IsConstant()) return false;
    for (const Edge* edge : next->in_edges()) {
      if (edge->IsControlEdge()) continue;
      if (seen.insert(edge->src()).second) left.push_back(edge->src());
    }
  }
  return true;
}

}  // namespace multistream
}  // namespace tensorflow
