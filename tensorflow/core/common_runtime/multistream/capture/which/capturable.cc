// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"

#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/compiler/tf2xla/const_analysis.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/sums.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {
namespace {

bool IsVariableArgument(const Node& node) {
  return node.IsArg() && node.output_type(0) == DT_RESOURCE;
}

// Ops that call a function, and nothing else.
bool IsPlainCall(absl::string_view op) {
  return op == "PartitionedCall" || op == "StatefulPartitionedCall";
}

// The function that a node names, or nullptr.
const NameAttrList* CalledBy(const AttrSlice& attributes) {
  const NameAttrList* function = nullptr;
  return TryGetNodeAttr(attributes, "f", &function) ||
                 TryGetNodeAttr(attributes, "function", &function)
             ? function
             : nullptr;
}

// XLA compiles no function that calls itself.
int OpsOf(const NameAttrList& function,
          const FunctionLibraryDefinition& library) {
  const FunctionDef* body = library.Find(function.name());
  int ops = 0;
  if (body == nullptr) return ops;
  for (const NodeDef& op : body->node_def()) {
    const NameAttrList* called = CalledBy(op);
    ops += called == nullptr ? 1 : OpsOf(*called, library);
  }
  return ops;
}

// Whether XLA compiles a function for the node, or has compiled it earlier for
// these shapes. A call also runs the function; with clusters, _XlaRun does,
// which finds it by a string key.
bool HasCompiled(const Node& node) {
  return node.type_string() == "_XlaCompile" || IsCompiledCall(node.def());
}

bool IsGather(const Node& node) {
  return node.type_string() == "ResourceGather" ||
         node.type_string() == "ResourceGatherNd";
}

// Ops that may have a variable's handle: they create it, pass it through, or
// read or change the variable.
bool MayHaveHandle(const Node& node) {
  return IsCompiled(node) || IsVariableArgument(node) || HandsValueOn(node) ||
         ChangesVariables(node.type_string()) || IsGather(node) ||
         GivesVariableShape(node) || node.type_string() == "VarHandleOp" ||
         node.type_string() == "ReadVariableOp";
}

// Whether `is_of_kind` holds for an edge that takes the variable handle that
// `node` gives to an op.
bool IsTakenBy(absl::FunctionRef<bool(const Edge&)> is_of_kind,
               const Node& node) {
  return WalkFinds(node, [is_of_kind](const Node& next, auto go_to) {
    for (const Edge* edge : next.out_edges()) {
      if (edge->IsControlEdge()) continue;
      if (is_of_kind(*edge)) return true;
      if (HandsValueOn(*edge->dst())) go_to(edge->dst());
    }
    return false;
  });
}

// A function that XLA compiles, or that such a function calls.
struct CompiledFunction {
  std::string obstacle;  // why it must not be recorded
  // Sorted indices of arguments. The first are must-be-constant: needed on the
  // host when XLA compiles the function, by XLA's own analysis. An axis, a
  // shape and a number of rows are; they become part of the compiled code.
  std::vector<int> constants;
  std::vector<int> changed;  // variables that the function changes
};

// Whether the outputs of `node` depend only on types, shapes and constants: on
// no input value of the graph, and on no variable.
bool IsDecidedByShapes(const Node& node) {
  return !WalkFinds(node, [](const Node& next, auto go_to) {
    if (GivesShape(next)) return false;
    if (next.num_inputs() == 0 && !next.IsConstant()) return true;
    for (const Edge* edge : next.in_edges()) {
      if (!edge->IsControlEdge()) go_to(edge->src());
    }
    return false;
  });
}

// Whether arguments and results of `type` live on the host: TensorFlow keeps
// 32-bit integers there, whatever the device.
bool IsHostValue(DataType type) { return type == DT_INT32; }

class Classifier {
 public:
  explicit Classifier(const FunctionLibraryDefinition& library)
      : library_(library) {}

  void Classify(const Graph& graph) {
    bool has_loops = false;
    std::set<const Node*> summands;
    for (const Node* node : graph.op_nodes()) {
      for (const Node* it : SummandsOf(*node)) summands.insert(it);
    }
    for (const Node* node : graph.op_nodes()) {
      has_loops |= node->IsEnter();
      if (std::string why = ObstacleAt(*node); !why.empty()) {
        Obstacle(*node, why);
        return;
      }
      if (node->IsRecv() && summands.count(node) > 0) {
        found.summands.push_back(found.receives.back());
      }
    }
    if (has_loops) FindTransfersInLoops(graph);
    if (!found.obstacle.empty()) return;
    if (found.changes_variables && !found.checks.empty()) {
      found.obstacle = "it changes variables, and an Assert may fail";
    } else if (!found.draws.empty() && !found.checks.empty()) {
      // The step that runs again would draw other numbers.
      found.obstacle = "it draws random numbers, and an Assert may fail";
    } else if (!found.changes_variables && found.sends.empty() &&
               found.results.empty()) {
      found.obstacle = "the graph has no result";
    } else if (late_ != nullptr && !found.sends.empty()) {
      Obstacle(*late_, "receives what may wait for the step's results");
    }
  }

  // Returns why `node` must not be recorded, or an empty string. Adds the
  // inputs and outputs of the graph that `node` stands for.
  std::string ObstacleAt(const Node& node) {
    for (const DataTypeVector& types :
         {node.input_types(), node.output_types()}) {
      for (DataType type : types) {
        if (type == DT_RESOURCE && MayHaveHandle(node)) continue;
        if (type == DT_STRING && IsCompiled(node)) continue;
        if (type == DT_VARIANT && MayHaveList(node)) continue;
        if (!DataTypeCanUseMemcpy(BaseType(type)) || IsRefType(type)) {
          return absl::StrCat("has a ", DataTypeString(type));
        }
      }
    }
    if (node.IsSend() || node.IsRecv()) return ObstacleAtTransfer(node);
    if (IsArgument(node)) return ObstacleAtArgument(node);
    if (IsResult(node)) {
      Capturable::Result& result = found.results.emplace_back();
      result.on_host = EndIsOnHost(node);
      result.on_device = IsOnDevice(node);
      const absl::Status status =
          GetNodeAttr(node.attrs(), "index", &result.index);
      return std::string(status.message());
    }
    if (node.type_string() == "VarHandleOp") return ObstacleAtHandle(node);
    if (HasCompiled(node)) return ObstacleInCluster(node);
    if (node.type_string() == "_XlaRun") return "";
    if (ChangesVariables(node.type_string())) {
      found.changes_variables = true;
      return IsHostValue(node.input_type(node.num_inputs() - 1))
                 ? "takes a value on the host"
                 : ObstacleAtScatter(node);
    }
    if (MayHaveHandle(node)) return "";
    if (HasStatelessDraw(node)) {
      found.draws.push_back(node.name());
      return "";
    }
    return ObstacleAtOp(node);
  }

  Capturable found;

 private:
  void Obstacle(const Node& node, absl::string_view why) {
    found.obstacle =
        absl::StrCat(node.type_string(), " '", node.name(), "' ", why);
    found.obstacle_at = node.name();
  }

  // Finds sends and receives in loops, which have a different key in each
  // iteration. And what draws other numbers in each iteration.
  void FindTransfersInLoops(const Graph& graph) {
    std::vector<ControlFlowInfo> frames;
    std::vector<std::string> not_reached;
    const absl::Status status =
        BuildControlFlowInfo(&graph, &frames, &not_reached);
    if (!status.ok() || !not_reached.empty()) {
      found.obstacle = absl::StrCat(
          "its loops are not known: ",
          status.ok() ? "nothing leads to some nodes" : status.message());
      return;
    }
    for (const Node* node : graph.op_nodes()) {
      if (!frames[node->id()].frame_name.empty() &&
          (node->IsSend() || node->IsRecv() || HasStatelessDraw(*node))) {
        Obstacle(*node, "is in a loop");
        return;
      }
    }
  }

  // Code that XLA compiles launches the same kernels each time if the ops in it
  // do.
  std::string ObstacleInCluster(const Node& node) {
    found.is_compiled = true;
    bool must_compile = node.type_string() != "_XlaCompile";
    TryGetNodeAttr(node.attrs(), "must_compile", &must_compile);
    if (!must_compile) {
      return "may leave its ops to TensorFlow, unless there is "
             "TF_XLA_FLAGS=--tf_xla_enable_lazy_compilation=false";
    }
    const NameAttrList* function = CalledBy(node.attrs());
    if (function == nullptr) return "has no function";
    const CompiledFunction& compiled = Compiled(*function);
    if (!compiled.obstacle.empty()) return compiled.obstacle;
    found.changes_variables |= !compiled.changed.empty();
    return ObstacleAtConstants(node, function->name(), compiled.constants);
  }

  // Refuses must-be-constant arguments whose values are not decided by shapes:
  // to compile, XLA would copy a value to the host, which waits for the GPU,
  // and the code is valid for one value only.
  std::string ObstacleAtConstants(const Node& node, const std::string& function,
                                  const std::vector<int>& constants) {
    for (const int i : constants) {
      const Node* value = nullptr;
      const absl::Status status = node.input_node(i, &value);
      if (!status.ok()) return std::string(status.message());
      if (!IsDecidedByShapes(*value)) {
        return absl::StrCat(
            "compiles ", function, " for one value of '",
            library_.Find(function)->signature().input_arg(i).name(),
            "', as of an axis or a size");
      }
    }
    return "";
  }

  // A function that calls itself is an obstacle: XLA does not compile it.
  const CompiledFunction& Compiled(const NameAttrList& function) {
    auto [it, is_new] = compiled_.try_emplace(function.name());
    if (is_new) {
      it->second.obstacle = absl::StrCat("compiles ", function.name());
      it->second = LookAt(function);
    }
    return it->second;
  }

  CompiledFunction LookAt(const NameAttrList& function) {
    CompiledFunction compiled;
    const FunctionDef* definition = library_.Find(function.name());
    if (definition == nullptr) {
      compiled.obstacle = absl::StrCat("compiles ", function.name());
      return compiled;
    }
    for (const NodeDef& op : definition->node_def()) {
      compiled.obstacle = ObstacleInCompiled(op);
      if (!compiled.obstacle.empty()) return compiled;
    }
    if (const absl::Status status = FindArguments(function, &compiled);
        !status.ok()) {
      compiled.obstacle = std::string(status.message());
    }
    return compiled;
  }

  std::string ObstacleInCompiled(const NodeDef& op) {
    // XLA leaves Asserts out.
    static const auto* only_here = new absl::flat_hash_set<absl::string_view>{
        "Assert", "ReadVariableOp", "ResourceGather"};
    if (IsListed(op.op()) || ChangesVariables(op.op()) ||
        only_here->contains(op.op())) {
      return "";
    }
    const NameAttrList* called = IsPlainCall(op.op()) ? CalledBy(op) : nullptr;
    return called == nullptr
               ? absl::StrCat("compiles ", op.op(), " '", op.name(), "'")
               : Compiled(*called).obstacle;
  }

  // Finds the indices of `compiled`.
  absl::Status FindArguments(const NameAttrList& function,
                             CompiledFunction* compiled) {
    // No device needed: the runtime only builds the graphs of functions.
    const ProcessFunctionLibraryRuntime process(
        /*device_mgr=*/nullptr, Env::Default(), /*config=*/nullptr,
        TF_GRAPH_DEF_VERSION, &library_, OptimizerOptions());
    FunctionLibraryRuntime* runtime =
        process.GetFLR(ProcessFunctionLibraryRuntime::kDefaultFLRDevice);
    FunctionLibraryRuntime::Handle handle;
    TF_RETURN_IF_ERROR(runtime->Instantiate(
        function.name(), AttrSlice(&function.attr()), &handle));
    const FunctionBody* body = runtime->GetFunctionBody(handle);
    if (body == nullptr) return absl::InternalError("a function has no graph");
    std::vector<bool> constant(body->arg_types.size());
    TF_RETURN_IF_ERROR(
        BackwardsConstAnalysis(*body->graph, &constant,
                               /*compile_time_const_nodes=*/nullptr, runtime));
    const auto changes = [this](const Edge& edge) { return Changes(edge); };
    for (size_t i = 0; i < constant.size(); ++i) {
      const int index = static_cast<int>(i);
      if (constant[i]) compiled->constants.push_back(index);
      if (body->arg_types[i] == DT_RESOURCE &&
          IsTakenBy(changes, *body->arg_nodes[i])) {
        compiled->changed.push_back(index);
      }
    }
    return absl::OkStatus();
  }

  // Whether the edge takes a variable's handle to what changes the variable.
  bool Changes(const Edge& edge) {
    const Node& user = *edge.dst();
    if (ChangesVariables(user.type_string())) return true;
    const NameAttrList* called =
        HasCompiled(user) || IsPlainCall(user.type_string())
            ? CalledBy(user.attrs())
            : nullptr;
    return called != nullptr &&
           absl::c_linear_search(Compiled(*called).changed, edge.dst_input());
  }

  std::string ObstacleAtTransfer(const Node& node) {
    // A value that kernels read on the host may decide what they launch.
    if (node.type_string() == "_HostRecv") {
      return "receives a value that its users read on the host";
    }
    if (node.IsRecv() && !ComesAfterArguments(node)) late_ = &node;
    if (PassesArgumentOn(node)) return ObstacleAtPassed(node);
    std::vector<std::string>& keys = IsCheck(node)   ? found.checks
                                     : node.IsSend() ? found.sends
                                                     : found.receives;
    return std::string(KeyOf(node, &keys.emplace_back()).message());
  }

  std::string ObstacleAtPassed(const Node& send) {
    Capturable::Passed& passed = found.passed.emplace_back();
    const Node* argument = nullptr;
    absl::Status status = send.input_node(0, &argument);
    if (status.ok()) status = KeyOf(send, &passed.key);
    if (status.ok()) {
      passed.on_host = EndIsOnHost(*argument);
      status = GetNodeAttr(argument->attrs(), "index", &passed.index);
    }
    return std::string(status.message());
  }

  std::string ObstacleAtArgument(const Node& node) {
    Capturable::Argument argument;
    argument.on_host = EndIsOnHost(node);
    argument.decides = DecidesSizes(node);
    if (argument.on_host && !argument.decides && !IsOnDevice(node)) {
      return "takes a value that its users read on the host";
    }
    argument.is_variable = IsVariableArgument(node);
    const absl::Status status =
        GetNodeAttr(node.attrs(), "index", &argument.index);
    if (argument.is_variable) {
      Capturable::Variable& variable = found.variables.emplace_back();
      variable.argument = static_cast<int>(found.arguments.size());
      NoteUses(node, &variable);
    }
    found.arguments.push_back(argument);
    return std::string(status.message());
  }

  void NoteUses(const Node& handle, Capturable::Variable* variable) {
    variable->gathered = IsTakenBy(
        [](const Edge& edge) { return IsGather(*edge.dst()); }, handle);
    variable->changed =
        IsTakenBy([this](const Edge& edge) { return Changes(edge); }, handle);
  }

  std::string ObstacleAtHandle(const Node& node) {
    Capturable::Variable& variable = found.variables.emplace_back();
    NoteUses(node, &variable);
    absl::Status status =
        GetNodeAttr(node.attrs(), "container", &variable.container);
    status.Update(GetNodeAttr(node.attrs(), "shared_name", &variable.name));
    if (variable.name == ResourceHandle::ANONYMOUS_NAME) {
      return "makes a variable of its own";
    }
    return std::string(status.message());
  }

  const FunctionLibraryDefinition& library_;
  std::map<std::string, CompiledFunction> compiled_;  // by name
  // A receive of a value that the host may compute from this graph's sends.
  const Node* late_ = nullptr;
};

}  // namespace

bool IsCompiled(const Node& node) {
  return HasCompiled(node) || node.type_string() == "_XlaRun";
}

int MostKernelsOf(const Node& node, const FunctionLibraryDefinition& library) {
  const NameAttrList* function =
      HasCompiled(node) ? CalledBy(node.attrs()) : nullptr;
  return function == nullptr ? 1 : OpsOf(*function, library);
}

std::vector<std::string> ObstaclesAt(const Graph& graph,
                                     const FunctionLibraryDefinition* library) {
  Classifier classifier(library == nullptr ? graph.flib_def() : *library);
  std::vector<std::string> obstacles(graph.num_node_ids());
  for (const Node* node : graph.op_nodes()) {
    const bool is_end =
        node->IsSend() || node->IsRecv() || node->IsArg() || node->IsRetval();
    if (is_end) continue;
    obstacles[node->id()] = classifier.ObstacleAt(*node);
    if (!obstacles[node->id()].empty()) continue;
    // A piece may not have the variable.
    if (GivesVariableShape(*node)) {
      obstacles[node->id()] = "gives a variable's shape";
    }
  }
  return obstacles;
}

Capturable ClassifyForCapture(const Graph& graph,
                              const FunctionLibraryDefinition* library) {
  Classifier classifier(library == nullptr ? graph.flib_def() : *library);
  classifier.Classify(graph);
  return std::move(classifier.found);
}

}  // namespace tensorflow::multistream
