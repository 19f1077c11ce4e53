// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow::multistream {
namespace {

using Ops = absl::flat_hash_set<absl::string_view>;

// Ops that pass a resource on without reading its value.
bool OnlyForwards(absl::string_view op) {
  static const auto* ops = new Ops{
      "Identity", "IdentityN",     "Switch",      "_SwitchN",      "Merge",
      "Enter",    "Exit",          "LoopCond",    "NextIteration", "_Arg",
      "_Retval",  "_DeviceRetval", "_DeviceArg",  "_Send",         "_HostSend",
      "_Recv",    "_HostRecv",     "StopGradient"};
  return ops->contains(op);
}

// Resources that live and die inside one step, so that no other group sees
// them: their memory is the step's own.
bool IsStepLocal(absl::string_view op) {
  return absl::StartsWith(op, "TensorArray") || op == "StackV2" ||
         op == "StackPushV2" || op == "StackPopV2" || op == "StackCloseV2";
}

// Ops that the registry calls stateful and that may yet run on any group. Their
// state is in host memory with a lock (random generators), in the resource that
// they name (the ops that use the resource are judged), or in the step. All
// other stateful ops stay on the leader.
bool IsHarmless(absl::string_view op) {
  static const auto* ops = new absl::flat_hash_set<std::string>(absl::StrSplit(
      "VarHandleOp VariableV2 Variable _VarHandlesOp Assert Print PrintV2 _Arg "
      "_Retval _DeviceArg _DeviceRetval _Send _Recv _HostSend _HostRecv "
      "PartitionedCall StatefulPartitionedCall If While Case Placeholder "
      "XlaLaunch XlaLaunchV2 _XlaCompile _XlaRun _XlaMerge NoOp",
      ' '));
  return ops->contains(op) || DrawsRandomNumbers(op);
}

// Whether an input of this type is a variable or other state.
bool IsState(DataType type) { return type == DT_RESOURCE || IsRefType(type); }

bool NamesFunction(const std::string& attribute, const AttrValue& value) {
  // Attributes with an underscore name gradients and the like.
  return !absl::StartsWith(attribute, "_") &&
         (value.has_func() || value.list().func_size() > 0);
}

// XLA ops have a function attribute, too, but compile the function and launch
// the result themselves. Other ops let an executor run the function.
bool IsXla(absl::string_view op) {
  return absl::StartsWith(op, "Xla") || absl::StartsWith(op, "_Xla");
}

// Whether the node is a cuDNN recurrent layer without random state. Its kernel,
// which all groups of a session share, keeps descriptors, but launches under
// the lock that guards them.
bool IsHarmlessLayer(const NodeDef& node) {
  return (node.op() == "CudnnRNN" || node.op() == "CudnnRNNV2" ||
          node.op() == "CudnnRNNV3") &&
         HasNoDropout(node);
}

}  // namespace

bool OnlyReads(absl::string_view op) {
  static const auto* ops =
      new Ops{"ReadVariableOp",       "_ReadVariablesOp", "ResourceGather",
              "ResourceGatherNd",     "VariableShape",    "VarIsInitializedOp",
              "IsVariableInitialized"};
  return ops->contains(op);
}

bool HasNoDropout(const NodeDef& node) {
  float dropout = 1;
  return TryGetNodeAttr(node, "dropout", &dropout) && dropout == 0;
}

const Node* FirstComputingOp(const Graph& graph) {
  for (const Node* node : graph.op_nodes()) {
    if (!node->IsArg() && !node->IsRetval() && !node->IsSend() &&
        !node->IsRecv() && !node->IsConstant() && !node->IsIdentity() &&
        node->type_string() != "NoOp") {
      return node;
    }
  }
  return nullptr;
}

bool IsCollective(const Node& node) {
  return absl::StartsWith(node.type_string(), "Collective") ||
         absl::StrContains(node.type_string(), "Nccl");
}

bool DrawsRandomNumbers(absl::string_view op) {
  static const auto* ops = new Ops{
      "RandomUniform",   "RandomStandardNormal", "RandomUniformInt",
      "TruncatedNormal", "Multinomial",          "ParameterizedTruncatedNormal",
      "RandomGammaV2",   "RandomShuffle"};
  return ops->contains(op);
}

bool IsCompiledCall(const NodeDef& node) {
  bool compiled = false;
  return TryGetNodeAttr(node, "_XlaMustCompile", &compiled) && compiled;
}

bool IsCall(const NodeDef& node, const FunctionLibraryDefinition* library) {
  if (IsXla(node.op()) || IsCompiledCall(node)) return false;
  if (library != nullptr && library->Contains(node.op())) return true;
  for (const auto& [name, value] : node.attr()) {
    if (NamesFunction(name, value)) return true;
  }
  return absl::StrContains(node.op(), "PyFunc");
}

namespace {

// Why a node that is neither a call nor known to be harmless must run on the
// leader; empty if it need not.
std::string OwnReason(const NodeDef& node, const OpDef& op, bool takes_state) {
  if (takes_state) return "may change a variable";
  if (op.is_stateful() && !IsHarmless(op.name()) && !IsHarmlessLayer(node)) {
    return "is stateful";
  }
  return "";
}

// Walks a graph's nodes and, through them, the functions they call.
class Walk {
 public:
  explicit Walk(const FunctionLibraryDefinition* library) : library_(library) {}

  // Why `node` must run on the leader; empty if it need not. `takes_state`:
  // an input is a resource or a reference.
  std::string ReasonFor(const NodeDef& node, bool takes_state) {
    const std::string& op = node.op();
    if (OnlyReads(op) || OnlyForwards(op) || IsStepLocal(op)) return "";
    // Each group loads compiled code once, with random numbers of its own that
    // begin with the same ones. In one group they never repeat.
    if (in_compiled_ && DrawsRandomNumbers(op)) {
      return absl::StrCat("node ", node.name(), " (", op,
                          ") draws random numbers in code of XLA's");
    }
    const absl::Cleanup back = [this, was = in_compiled_] {
      in_compiled_ = was;
    };
    in_compiled_ |= IsXla(op) || IsCompiledCall(node);
    bool calls = false;
    if (library_ != nullptr && library_->Contains(op)) {
      calls = true;
      if (std::string r = ReasonForFunction(op); !r.empty()) return r;
    }
    for (const auto& [name, value] : node.attr()) {
      if (!NamesFunction(name, value)) continue;
      calls = true;
      if (value.has_func()) {
        std::string r = ReasonForFunction(value.func().name());
        if (!r.empty()) return r;
      }
      for (const NameAttrList& f : value.list().func()) {
        if (std::string r = ReasonForFunction(f.name()); !r.empty()) return r;
      }
    }
    if (calls) return "";
    const OpDef* op_def = nullptr;
    if (!LookUp(op, &op_def)) {
      return absl::StrCat("node ", node.name(), " has the unknown op ", op);
    }
    // An _XlaRun takes the cluster's variables. The cluster is judged at its
    // _XlaCompile, which names the functions that may change them.
    const std::string reason =
        OwnReason(node, *op_def, takes_state && op != "_XlaRun");
    if (reason.empty()) return "";
    return absl::StrCat("node ", node.name(), " (", op, ") ", reason);
  }

 private:
  bool LookUp(const std::string& op, const OpDef** op_def) const {
    if (library_ != nullptr) return library_->LookUpOpDef(op, op_def).ok();
    return OpRegistry::Global()->LookUpOpDef(op, op_def).ok();
  }

  std::string ReasonForFunction(const std::string& name) {
    if (!seen_.insert({name, in_compiled_}).second) return "";
    const FunctionDef* function =
        library_ == nullptr ? nullptr : library_->Find(name);
    if (function == nullptr) {
      return absl::StrCat("function ", name, " is not in the library");
    }
    for (const NodeDef& node : function->node_def()) {
      std::string reason = ReasonFor(node, TakesState(node));
      if (!reason.empty()) {
        return absl::StrCat(reason, ", in function ", name);
      }
    }
    return "";
  }

  // A NodeDef has no input types; they follow from its op and attributes.
  bool TakesState(const NodeDef& node) const {
    const OpDef* op_def = nullptr;
    if (!LookUp(node.op(), &op_def)) return true;
    DataTypeVector inputs, outputs;
    if (!InOutTypesForNode(node, *op_def, &inputs, &outputs).ok()) return true;
    return std::any_of(inputs.begin(), inputs.end(), IsState);
  }

  const FunctionLibraryDefinition* const library_;
  bool in_compiled_ = false;  // XLA compiles what is being looked at
  absl::flat_hash_set<std::pair<std::string, bool>> seen_;  // if in_compiled_
};

}  // namespace

GraphTraits ClassifyGraph(const Graph& graph,
                          const FunctionLibraryDefinition* library) {
  GraphTraits traits;
  Walk walk(library);
  for (const Node* node : graph.op_nodes()) {
    bool takes_state = false;
    for (int i = 0; i < node->num_inputs(); ++i) {
      takes_state |= IsState(node->input_type(i));
    }
    for (int i = 0; i < node->num_outputs(); ++i) {
      traits.has_references |= IsRefType(node->output_type(i));
    }
    if (traits.leader_only.empty()) {
      traits.leader_only = walk.ReasonFor(node->def(), takes_state);
    }
    const std::string& op = node->type_string();
    if (takes_state && !OnlyForwards(op) && !IsStepLocal(op) &&
        !IsCall(node->def(), library)) {
      traits.readers.insert(node->name());
    }
    traits.takes_tensors |= (op == "_Arg" || op == "_DeviceArg") &&
                            node->output_type(0) != DT_RESOURCE;
    traits.has_return_values |= op == "_Retval" || op == "_DeviceRetval";
  }
  if (traits.has_references) {
    // A reference variable may be changed in place however many readers its
    // buffer has, so every op that may hold an alias of it counts as reading.
    for (const Node* node : graph.op_nodes()) {
      if (MayReadReference(node->def(), library)) {
        traits.readers.insert(node->name());
      }
    }
  }
  return traits;
}

bool MayReadReference(const NodeDef& node,
                      const FunctionLibraryDefinition* library) {
  return node.op() != "_Recv" && node.op() != "_HostRecv" &&
         !IsCall(node, library);
}

std::string LeaderReason(const Node& node,
                         const FunctionLibraryDefinition* library) {
  const std::string& op = node.type_string();
  bool takes_resource = false;
  for (const Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge()) continue;
    takes_resource |= node.input_type(edge->dst_input()) == DT_RESOURCE;
    // Reading a reference copies nothing: the tensor is the variable's memory.
    if (IsRefType(edge->src()->output_type(edge->src_output()))) {
      return "reads a reference";
    }
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (IsRefType(node.output_type(i))) return "gives a reference";
  }
  if (absl::StrContains(op, "PyFunc")) return "calls Python";
  // By Grappler's optimizer of this name; the leader's device has the memory.
  if (HasNodeAttr(node.def(), "_scoped_allocator")) {
    return "writes into a scoped allocator's memory";
  }
  if (IsStepLocal(op)) return "keeps tensors in a resource";
  if (OnlyReads(op) || OnlyForwards(op) || IsCall(node.def(), library)) {
    return "";
  }
  if (IsCompiledCall(node.def())) {
    return Walk(library).ReasonFor(node.def(), takes_resource);
  }
  return OwnReason(node.def(), node.op_def(), takes_resource);
}

bool MayChangeState(const OpKernel& kernel,
                    const FunctionLibraryDefinition* library) {
  const DataTypeVector& inputs = kernel.input_types();
  if (std::none_of(inputs.begin(), inputs.end(), IsState)) return false;
  if (IsCompiledCall(kernel.def())) {
    return library == nullptr ||
           !Walk(library).ReasonFor(kernel.def(), /*takes_state=*/true).empty();
  }
  const absl::string_view op = kernel.type_string_view();
  return !OnlyReads(op) && !OnlyForwards(op) && !IsStepLocal(op) &&
         !IsCall(kernel.def(), library);
}

bool MayKeepInputs(absl::string_view op) {
  // These ops compute in the variable's buffer.
  for (absl::string_view begin :
       {"ResourceApply", "ResourceSparseApply", "Apply", "SparseApply",
        "AssignAdd", "AssignSub", "ResourceScatter", "Scatter"}) {
    if (absl::StartsWith(op, begin)) return false;
  }
  return true;
}

bool PassesVariablesOn(absl::string_view op) { return op == "_XlaCompile"; }

bool HandsValueOn(const Node& node) {
  return node.IsIdentity() || node.IsEnter() || node.IsExit() ||
         node.IsMerge() || node.IsNextIteration() || node.IsSwitch();
}

namespace {

bool OpGivesShape(absl::string_view op) {
  static const auto* ops = new absl::flat_hash_set<absl::string_view>{
      "Rank", "Shape", "ShapeN", "Size"};
  return ops->contains(op);
}

}  // namespace

bool GivesShape(const Node& node) { return OpGivesShape(node.type_string()); }

bool LaunchesNothing(absl::string_view op) {
  static const auto* ops =
      new Ops{"Bitcast",         "ExpandDims", "Identity",      "IdentityN",
              "PreventGradient", "Reshape",    "Squeeze",       "Snapshot",
              "StopGradient",    "NoOp",       "ReadVariableOp"};
  return ops->contains(op) || OpGivesShape(op);
}

bool IsAlwaysConstant(const Node& node) {
  return node.IsConstant() &&
         absl::c_none_of(node.in_nodes(),
                         [](const Node* before) { return before->IsOp(); });
}

bool IsOnHost(const Node& node) {
  MemoryTypeVector inputs, outputs;
  if (!MemoryTypesForNode(OpRegistry::Global(), DEVICE_GPU, node.def(), &inputs,
                          &outputs)
           .ok()) {
    return false;
  }
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  return !inputs.empty() &&
         std::all_of(inputs.begin(), inputs.end(),
                     [](MemoryType type) { return type == HOST_MEMORY; });
}

int CountLaunches(const Graph& graph) {
  int launches = 0;
  for (const Node* node : graph.op_nodes()) {
    const bool is_end =
        node->IsSend() || node->IsRecv() || node->IsArg() || node->IsRetval();
    launches += !is_end && !node->IsConstant() && !node->IsControlFlow() &&
                node->type_string() != "VarHandleOp" &&
                !LaunchesNothing(node->type_string()) && !IsOnHost(*node);
  }
  return launches;
}

bool WalkFinds(
    const Node& from,
    absl::FunctionRef<bool(const Node& node,
                           absl::FunctionRef<void(const Node*)> go_to)>
        look) {
  absl::flat_hash_set<const Node*> seen = {&from};
  std::vector<const Node*> left = {&from};
  const auto go_to = [&](const Node* node) {
    if (seen.insert(node).second) left.push_back(node);
  };
  while (!left.empty()) {
    const Node* next = left.back();
    left.pop_back();
    if (look(*next, go_to)) return true;
  }
  return false;
}

bool IsOfType(absl::string_view device, absl::string_view type) {
  DeviceNameUtils::ParsedName name;
  return DeviceNameUtils::ParseFullName(device, &name) && name.has_type &&
         name.type == type;
}

bool KeepsScratch(const std::string& op) {
  // CudnnRNN* cache dropout states and descriptors, FFT ops a plan with its
  // work area.
  return absl::StrContains(op, "CudnnRNN") || absl::StrContains(op, "FFT");
}

}  // namespace tensorflow::multistream
