// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {
namespace {

using Group = std::optional<int>;

template <typename Attributes>
const AttrValue* FindAttr(const Attributes& attributes, const char* name) {
  auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : &found->second;
}

Group GroupOf(const NodeDef& node) {
  int group;
  return TryGetNodeAttr(node, kStreamGroupAttr, &group) ? Group(group)
                                                        : std::nullopt;
}

template <typename Attributes>
bool MustBeCompiled(const Attributes& attributes) {
  const AttrValue* value = FindAttr(attributes, "_XlaMustCompile");
  return value != nullptr && value->b();
}

// Whether the functions that a node names run as nodes of the same step. They
// do not if XLA compiles them to one kernel, if an input pipeline runs them on
// its own threads, or if a SymbolicGradient expands them.
bool CallsInStep(const NodeDef& node) {
  const absl::string_view op = node.op();
  if (MustBeCompiled(node.attr())) return false;
  const AttrValue* cluster = FindAttr(node.attr(), "_xla_compile_id");
  if (cluster != nullptr && !cluster->s().empty()) return false;
  return op != FunctionLibraryDefinition::kGradientOp &&
         !absl::StartsWith(op, "Xla") && !absl::StartsWith(op, "_Xla") &&
         !absl::StrContains(op, "Dataset") && op != "MapDefun" &&
         op != "OneShotIterator";
}

// Adds the copies of functions that a graph needs to `library`.
class FunctionCopies {
 public:
  explicit FunctionCopies(FunctionLibraryDefinition* library)
      : library_(library) {}

  // Whether `node`, which is on `group`, calls functions that must be copied.
  bool NeedsRewrite(Group group, const NodeDef& node) {
    for (const std::string& callee : Callees(node)) {
      if (NeedsCopy(group, callee)) return true;
    }
    return false;
  }

  // Makes `node`, which is on `group`, call the copies of its functions.
  absl::Status RewriteCall(Group group, NodeDef* node) {
    if (!NeedsRewrite(group, *node)) return absl::OkStatus();
    absl::Status status = PointAtCopy(group, node->mutable_op());
    for (auto& [name, value] : *node->mutable_attr()) {
      if (!MayNameCallee(name)) continue;
      if (value.has_func()) {
        status.Update(PointAtCopy(group, value.mutable_func()->mutable_name()));
      }
      if (!value.has_list()) continue;
      for (NameAttrList& f : *value.mutable_list()->mutable_func()) {
        status.Update(PointAtCopy(group, f.mutable_name()));
      }
    }
    return status;
  }

 private:
  // Attributes that start with an underscore name gradients and the like.
  static bool MayNameCallee(absl::string_view attribute) {
    return !absl::StartsWith(attribute, "_");
  }

  // False for a copy made by an earlier run: its nodes have their groups.
  bool MayCopy(const std::string& name) const {
    const FunctionDef* function = library_->Find(name);
    return function != nullptr && !MustBeCompiled(function->attr()) &&
           FindAttr(function->attr(), kStreamCopyOfAttr) == nullptr;
  }

  // The functions that `node` calls and that may be copied.
  std::vector<std::string> Callees(const NodeDef& node) const {
    std::vector<std::string> callees;
    if (!CallsInStep(node)) return callees;
    auto add = [&](const std::string& name) {
      if (MayCopy(name)) callees.push_back(name);
    };
    add(node.op());
    for (const auto& [name, value] : node.attr()) {
      if (!MayNameCallee(name)) continue;
      if (value.has_func()) add(value.func().name());
      for (const NameAttrList& f : value.list().func()) add(f.name());
    }
    return callees;
  }

  bool NeedsCopy(Group group, const std::string& callee) {
    return group.has_value() || HasScopedCall(callee);
  }

  // Whether a function called outside every scope has calls inside a scope,
  // directly or in functions that it calls outside every scope.
  bool HasScopedCall(const std::string& name) {
    if (auto found = has_scoped_call_.find(name);
        found != has_scoped_call_.end()) {
      return found->second;
    }
    std::vector<std::string> open = {name};
    absl::flat_hash_set<std::string> seen = {name};
    bool scoped = false;
    while (!open.empty() && !scoped) {
      const std::string next = std::move(open.back());
      open.pop_back();
      for (const NodeDef& node : library_->Find(next)->node_def()) {
        for (const std::string& callee : Callees(node)) {
          scoped |= GroupOf(node).has_value();
          if (seen.insert(callee).second) open.push_back(callee);
        }
      }
    }
    // If there is none, all functions that were visited have none either.
    if (scoped) seen = {name};
    for (const std::string& member : seen) has_scoped_call_[member] = scoped;
    return scoped;
  }

  // If a node on `group` must call a copy of function `name`, changes `name` to
  // the copy's.
  absl::Status PointAtCopy(Group group, std::string* name) {
    if (!MayCopy(*name) || !NeedsCopy(group, *name)) return absl::OkStatus();
    absl::StatusOr<std::string> copy = CopyOf(*name, group);
    if (copy.ok()) *name = *std::move(copy);
    return copy.status();
  }

  // The name of the function's copy for calls on `group`. Makes the copy if it
  // does not exist.
  absl::StatusOr<std::string> CopyOf(const std::string& name, Group group) {
    std::string& copy_name = copies_[{name, group}];
    if (!copy_name.empty()) return copy_name;
    const std::string base = group.has_value()
                                 ? absl::StrCat(name, "__stream_group_", *group)
                                 : absl::StrCat(name, "__stream_groups");
    copy_name = base;
    for (int i = 1;; ++i) {
      const FunctionDef* there = library_->Find(copy_name);
      if (there == nullptr) break;
      const AttrValue* original = FindAttr(there->attr(), kStreamCopyOfAttr);
      if (original != nullptr && original->s() == name) return copy_name;
      copy_name = absl::StrCat(base, "_", i);
    }
    // Set the name before visiting the nodes: a function may call itself. Keep
    // a copy: RewriteCall may rehash `copies_`.
    const std::string result = copy_name;
    FunctionDef copy = *library_->Find(name);
    copy.mutable_signature()->set_name(result);
    (*copy.mutable_attr())[kStreamCopyOfAttr].set_s(name);
    for (NodeDef& node : *copy.mutable_node_def()) {
      Group own = GroupOf(node);
      if (!own.has_value() && group.has_value()) {
        (*node.mutable_attr())[kStreamGroupAttr].set_i(*group);
        own = group;
      }
      TF_RETURN_IF_ERROR(RewriteCall(own, &node));
    }
    const StackTracesMap* traces = library_->GetStackTraces(name);
    TF_RETURN_IF_ERROR(library_->AddFunctionDef(
        copy, traces == nullptr ? StackTracesMap() : *traces));
    if (std::string gradient = library_->FindGradient(name);
        !gradient.empty()) {
      GradientDef gradient_of_copy;
      gradient_of_copy.set_function_name(result);
      gradient_of_copy.set_gradient_func(gradient);
      TF_RETURN_IF_ERROR(library_->AddGradientDef(gradient_of_copy));
    }
    return result;
  }

  FunctionLibraryDefinition* const library_;
  absl::flat_hash_map<std::pair<std::string, Group>, std::string> copies_;
  absl::flat_hash_map<std::string, bool> has_scoped_call_;
};

// Replaces the node by a new one, as a node's op cannot change.
absl::Status ReplaceNode(const NodeDef& def, Node* node, Graph* graph) {
  absl::Status status;
  Node* replacement = graph->AddNode(def, &status);
  if (!status.ok()) return status;
  replacement->set_assigned_device_name(node->assigned_device_name());
  replacement->SetStackTrace(node->GetStackTrace());
  for (const Edge* edge : node->in_edges()) {
    graph->AddEdge(edge->src(), edge->src_output(), replacement,
                   edge->dst_input());
  }
  const std::vector<const Edge*> out(node->out_edges().begin(),
                                     node->out_edges().end());
  for (const Edge* edge : out) {
    Node* dst = edge->dst();
    const int src_output = edge->src_output();
    const int dst_input = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(replacement, src_output, dst, dst_input);
  }
  graph->RemoveNode(node);
  return absl::OkStatus();
}

// A graph looks functions up in its own library or, if the runtime left that
// one empty, in the pass's. Adds the copies that the graph's library lacks.
absl::Status ShareCopies(const FunctionLibraryDefinition& library,
                         Graph* graph) {
  for (const std::string& name : library.ListFunctionNames()) {
    const FunctionDef* function = library.Find(name);
    const OpRegistrationData* known;
    if (FindAttr(function->attr(), kStreamCopyOfAttr) == nullptr ||
        graph->op_registry()->LookUp(name, &known).ok()) {
      continue;
    }
    const StackTracesMap* traces = library.GetStackTraces(name);
    TF_RETURN_IF_ERROR(graph->mutable_flib_def()->AddFunctionDef(
        *function, traces == nullptr ? StackTracesMap() : *traces));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AssignFunctionGroups(const GraphOptimizationPassOptions& options,
                                  bool enabled) {
  if (!enabled || options.graph == nullptr || *options.graph == nullptr) {
    return absl::OkStatus();
  }
  Graph* graph = options.graph->get();
  FunctionLibraryDefinition* library = options.flib_def != nullptr
                                           ? options.flib_def
                                           : graph->mutable_flib_def();
  FunctionCopies copies(library);
  std::vector<std::pair<Node*, NodeDef>> calls;
  for (Node* node : graph->op_nodes()) {
    const Group group = GroupOf(node->def());
    if (!copies.NeedsRewrite(group, node->def())) continue;
    NodeDef def = node->def();
    TF_RETURN_IF_ERROR(copies.RewriteCall(group, &def));
    calls.emplace_back(node, std::move(def));
  }
  if (calls.empty()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(ShareCopies(*library, graph));
  for (const auto& [node, def] : calls) {
    if (def.op() != node->type_string()) {
      TF_RETURN_IF_ERROR(ReplaceNode(def, node, graph));
      continue;
    }
    for (const auto& [name, value] : def.attr()) {
      if (value.has_func() || value.list().func_size() > 0) {
        node->AddAttr(name, value);
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
