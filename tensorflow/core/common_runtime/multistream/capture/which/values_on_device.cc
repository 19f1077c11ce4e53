// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/integer_ops.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {

namespace {

constexpr char kOnDevice[] = "_multi_stream_on_device";

std::string NameOf(const Node& node) {
  return absl::StrCat(node.type_string(), " '", node.name(), "'");
}

// Where the tensor of an output of the step's graph is in the recorded graph.
struct Made {
  enum class Place {
    kDevice,
    kDecided,  // on the host
    kHost,     // on the host, and not known to be decided
  };
  Node* node = nullptr;
  int output = 0;
  Place place = Place::kHost;
  DataType type = DT_INVALID;
  bool is_constant = false;  // in no loop

  bool operator<(const Made& other) const {
    return std::tie(node, output, type) <
           std::tie(other.node, other.output, other.type);
  }
};
using Place = Made::Place;

class Mover {
 public:
  explicit Mover(const Graph& graph)
      : old_(graph.flib_def()),
        graph_(std::make_unique<Graph>(graph.flib_def())) {
    old_.Copy(graph);
    graph_->set_versions(graph.versions());
  }

  absl::StatusOr<std::unique_ptr<Graph>> Make() {
    FindCopies();
    // The order is found along edges from the source, which nodes may lack.
    FixupSourceAndSinkEdges(&old_);
    std::vector<Node*> order;
    GetReversePostOrder(old_, &order, NodeComparatorID(), [](const Edge& edge) {
      return !edge.src()->IsNextIteration();
    });
    made_.resize(old_.num_node_ids());
    nodes_.resize(old_.num_node_ids());
    for (const Node* node : order) {
      if (node->IsOp()) TF_RETURN_IF_ERROR(Add(*node));
    }
    TF_RETURN_IF_ERROR(CloseLoops());
    for (const Edge* edge : old_.edges()) {
      Node* from = nodes_[edge->src()->id()];
      Node* to = nodes_[edge->dst()->id()];
      if (!edge->IsControlEdge() || from == nullptr || to == nullptr) continue;
      graph_->AddControlEdge(from, to);
    }
    FixupSourceAndSinkEdges(graph_.get());
    return std::move(graph_);
  }

  // After an error: the node at which it was found.
  const std::string& at() const { return at_; }

 private:
  // Finds the copies within the device; lets a copy's receive come after its
  // send.
  void FindCopies() {
    absl::flat_hash_map<std::string, Node*> sends;
    for (Node* node : old_.op_nodes()) {
      if (node->IsSend() && IsCopyInPlace(*node)) {
        sends[TensorNameOf(*node)] = node;
      }
    }
    for (Node* node : old_.op_nodes()) {
      if (!node->IsRecv() || !IsCopyInPlace(*node)) continue;
      const auto send = sends.find(TensorNameOf(*node));
      if (send == sends.end()) continue;
      send_of_[node] = send->second;
      old_.AddControlEdge(send->second, node);
    }
  }

  absl::Status Add(const Node& node) {
    at_ = node.name();
    if (node.IsSend() && IsCopyInPlace(node)) return absl::OkStatus();
    if (const auto copy = send_of_.find(&node); copy != send_of_.end()) {
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(*copy->second, 0));
      made_[node.id()] = {made};
      return absl::OkStatus();
    }
    if (IsAssert(node)) return AddCheck(node);
    if (IsMessage(node)) return absl::OkStatus();
    if (DecidesSizes(node)) return AddDecided(node);
    if (IsHostArgument(node)) return AddSource(node, node.type_string());
    if (ComesFromHost(node)) return AddSource(node, "_Recv");
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryTypesForNode(old_.op_registry(), DEVICE_GPU,
                                          node.def(), &inputs, &outputs));
    if (IsEndOfPiece(node)) {
      MemoryTypeVector& types = node.IsArg() ? outputs : inputs;
      types[0] = EndIsOnHost(node) ? HOST_MEMORY : DEVICE_MEMORY;
    }
    if (IsEndOfPiece(node) && node.IsRetval() && EndIsOnHost(node)) {
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(node, 0));
      if (made.place == Place::kHost) {
        at_ = made.node->name();
        return absl::FailedPreconditionError(absl::StrCat(
            NameOf(*made.node), " gives the host what shapes do not decide"));
      }
    }
    if (MayRunOnHost(node) && (absl::c_linear_search(inputs, DEVICE_MEMORY) ||
                               absl::c_linear_search(outputs, DEVICE_MEMORY))) {
      TF_ASSIGN_OR_RETURN(const bool decided, HasDecidedInputs(node));
      if (decided) return AddOnHost(node);
    }
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (inputs[i] != HOST_MEMORY || HasNoPlace(node.input_type(i))) continue;
      if (IsBackEdge(node, i)) continue;
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(node, i));
      if (made.place != Place::kDevice || made.is_constant) continue;
      if (MakesKey(node)) return AddKey(node, made);
      VLOG(2) << NameOf(node) << " takes what is on the device, "
              << NameOf(*made.node);
      return Move(node);
    }
    return AddAsItIs(node, inputs, outputs);
  }

  // An input of the step, whose tensor the recording has on the device.
  absl::Status AddSource(const Node& node, const std::string& op) {
    NodeDef def = node.def();
    def.set_op(op);
    def.set_name(NewName(node));
    AddNodeAttr(kOnDevice, true, &def);
    TF_ASSIGN_OR_RETURN(Node * added, AddFor(node, std::move(def)));
    made_[node.id()] = {{added, 0, Place::kDevice, node.output_type(0)}};
    return absl::OkStatus();
  }

  absl::Status AddDecided(const Node& node) {
    TF_ASSIGN_OR_RETURN(Node * added, AddFor(node, node.def()));
    made_[node.id()] = {{added, 0, Place::kDecided, node.output_type(0)}};
    return absl::OkStatus();
  }

  absl::StatusOr<bool> HasDecidedInputs(const Node& node) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(node, i));
      if (made.place != Place::kDecided && !made.is_constant) return false;
    }
    return true;
  }

  absl::Status AddOnHost(const Node& node) {
    TF_ASSIGN_OR_RETURN(Node * added,
                        AddFor(node, multistream::OnHost(node, NewName(node))));
    const MemoryTypeVector types(node.num_inputs(), HOST_MEMORY);
    TF_RETURN_IF_ERROR(AddInputs(node, types, added).status());
    for (int i = 0; i < node.num_outputs(); ++i) {
      made_[node.id()].push_back(
          {added, i, Place::kDecided, node.output_type(i)});
    }
    return absl::OkStatus();
  }

  // Sends the condition to the host of the node's device.
  absl::Status AddCheck(const Node& node) {
    NodeDef def = SendOfCondition(node, NewName(node));
    if (def.op().empty()) return ReadsOnHost(node);
    TF_ASSIGN_OR_RETURN(const Made condition, InputOf(node, 0));
    TF_ASSIGN_OR_RETURN(Node * added, AddFor(node, std::move(def)));
    return AddInput(node, condition, DEVICE_MEMORY, added, 0).status();
  }

  absl::Status AddAsItIs(const Node& node, const MemoryTypeVector& inputs,
                         const MemoryTypeVector& outputs) {
    TF_ASSIGN_OR_RETURN(Node * added, AddFor(node, node.def()));
    TF_ASSIGN_OR_RETURN(const bool decided, AddInputs(node, inputs, added));
    const Place on_host =
        GivesShape(node) || GivesVariableShape(node) ||
                (decided && (node.num_inputs() > 0 || node.IsConstant()))
            ? Place::kDecided
            : Place::kHost;
    for (int i = 0; i < node.num_outputs(); ++i) {
      made_[node.id()].push_back(
          {added, i, outputs[i] == HOST_MEMORY ? on_host : Place::kDevice,
           node.output_type(i), IsAlwaysConstant(node)});
    }
    return absl::OkStatus();
  }

  absl::Status AddKey(const Node& node, const Made& seed) {
    TF_ASSIGN_OR_RETURN(const Made wide, OnDevice(node, seed, DT_INT64));
    Node *key, *counter;
    TF_RETURN_IF_ERROR(AddKeyAndCounter(node.name() + "/on_device", wide.node,
                                        wide.output, graph_.get(), &key,
                                        &counter));
    nodes_[node.id()] = counter;
    for (Node* made : {key, counter}) {
      made_[node.id()].push_back({made, 0, Place::kDevice, DT_UINT64});
    }
    return absl::OkStatus();
  }

  // Whether a number that the node takes is int64 already.
  bool TakesInt64(const Node& node) const {
    for (int i = 0; i < node.num_inputs(); ++i) {
      const auto made = InputOf(node, i);
      if (node.input_type(i) != DT_INT32 || !made.ok()) continue;
      if (made->type == DT_INT64) return true;
    }
    return false;
  }

  // Adds the node's counterpart with another type, or a result of the step.
  absl::Status Move(const Node& node) {
    NodeDef def = node.def();
    def.set_name(NewName(node));
    Counterpart other;
    if (node.IsRetval()) {
      AddNodeAttr(kOnDevice, true, &def);
    } else if (node.IsSend()) {
      def.set_op("_Send");
    } else {
      TF_ASSIGN_OR_RETURN(other, CounterpartOf(node, TakesInt64(node)));
      if (other.type == DT_INVALID) return ReadsOnHost(node);
      (*def.mutable_attr())["T"].set_type(other.type);
    }
    TF_ASSIGN_OR_RETURN(Node * added, AddFor(node, def));
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryTypesForNode(old_.op_registry(), DEVICE_GPU, def,
                                          &inputs, &outputs));
    if (other.type == DT_INVALID) inputs[0] = DEVICE_MEMORY;  // a result
    TF_RETURN_IF_ERROR(AddInputs(node, inputs, added).status());
    for (int i = 0; i < added->num_outputs(); ++i) {
      Made made = {added, i,
                   outputs[i] == HOST_MEMORY ? Place::kDecided : Place::kDevice,
                   added->output_type(i)};
      if (other.narrow && made.type == other.type) {
        TF_ASSIGN_OR_RETURN(made, OnDevice(node, made, DT_INT32));
      }
      made_[node.id()].push_back(made);
    }
    return absl::OkStatus();
  }

  // Adds the input edges of `added`, whose inputs have the places `types`.
  // Returns whether all inputs are decided.
  absl::StatusOr<bool> AddInputs(const Node& node,
                                 const MemoryTypeVector& types, Node* added) {
    bool decided = true;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (IsBackEdge(node, i)) {
        back_edges_.push_back({&node, added, i, types[i]});
        continue;
      }
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(node, i));
      TF_ASSIGN_OR_RETURN(const bool is_decided,
                          AddInput(node, made, types[i], added, i));
      decided = decided && is_decided;
    }
    return decided;
  }

  absl::StatusOr<bool> AddInput(const Node& node, Made made, MemoryType type,
                                Node* added, int input) {
    if (!HasNoPlace(made.type)) {
      if (type == DEVICE_MEMORY) {
        TF_ASSIGN_OR_RETURN(made,
                            OnDevice(node, made, added->input_type(input)));
      } else if (made.place == Place::kDevice) {
        if (!made.is_constant) return ReadsOnHost(node);
        TF_ASSIGN_OR_RETURN(made, OnHost(made));
      }
      if (type == HOST_MEMORY && CopiesHostInput(node, input)) {
        if (made.place != Place::kDecided) return ReadsOnHost(node);
        TF_ASSIGN_OR_RETURN(made.node, AddFrom(made, KeepDecided(made.type)));
        made.output = 0;
      }
    }
    graph_->AddEdge(made.node, made.output, added, input);
    return made.place == Place::kDecided;
  }

  // A constant of the device, on the host.
  absl::StatusOr<Made> OnHost(const Made& constant) {
    Made& known = converted_[{constant, constant.type}];
    if (known.node != nullptr) return known;
    NodeDef def = constant.node->def();
    def.set_op("HostConst");
    def.set_name(NewName(*constant.node));
    TF_ASSIGN_OR_RETURN(
        Node * added,
        AddAssigned(std::move(def), constant.node->assigned_device_name(),
                    graph_.get()));
    return known = {added, 0, Place::kDecided, constant.type};
  }

  // The tensor on the device, as `type`: its own, or another one for integers.
  absl::StatusOr<Made> OnDevice(const Node& user, const Made& made,
                                DataType type) {
    if (made.place == Place::kDevice && made.type == type) return made;
    if (made.place == Place::kHost) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(user), " takes what '", made.node->name(),
                       "' computes on the host"));
    }
    Made& known = converted_[{made, type}];
    if (known.node != nullptr) return known;
    NodeDef def;
    if (made.is_constant && made.type == DT_INT32 && type != DT_INT32) {
      Tensor value;
      TF_RETURN_IF_ERROR(GetNodeAttr(made.node->attrs(), "value", &value));
      def = ConstantAs(type, value);
    } else if (made.place == Place::kDecided) {
      if (made.type != type) {
        TF_ASSIGN_OR_RETURN(const Made copy, OnDevice(user, made, made.type));
        return OnDevice(user, copy, type);
      }
      def = CopyDecided(type);
    } else if (made.type == DT_INT64 && type != DT_INT32) {
      TF_ASSIGN_OR_RETURN(const Made narrow, OnDevice(user, made, DT_INT32));
      return OnDevice(user, narrow, type);
    } else {
      def = Conversion(made.type, type);
    }
    TF_ASSIGN_OR_RETURN(Node * added, AddFrom(made, std::move(def)));
    return known = {added, 0, Place::kDevice, type};
  }

  // Adds a node that takes `made`, or stands for it.
  absl::StatusOr<Node*> AddFrom(const Made& made, NodeDef def) {
    const OpDef* op;
    TF_RETURN_IF_ERROR(graph_->op_registry()->LookUpOpDef(def.op(), &op));
    AddDefaultsToNodeDef(*op, &def);
    def.set_name(NewName(*made.node));
    // Kernels check the number of inputs.
    const bool has_input = op->input_arg_size() > 0;
    if (has_input) def.add_input(made.node->name());
    TF_ASSIGN_OR_RETURN(
        Node * added,
        AddAssigned(std::move(def), made.node->assigned_device_name(),
                    graph_.get()));
    if (has_input) graph_->AddEdge(made.node, made.output, added, 0);
    return added;
  }

  // Executors share kernels by name, so a changed node needs another name.
  std::string NewName(const Node& node) {
    return graph_->NewName(absl::StrCat(node.name(), "/on_device"));
  }

  // Adds the counterpart of a node of the step's graph.
  absl::StatusOr<Node*> AddFor(const Node& node, NodeDef def) {
    TF_ASSIGN_OR_RETURN(
        Node * added,
        AddAssigned(std::move(def), node.assigned_device_name(), graph_.get()));
    return nodes_[node.id()] = added;
  }

  absl::StatusOr<Made> InputOf(const Node& node, int input) const {
    const Edge* edge;
    TF_RETURN_IF_ERROR(node.input_edge(input, &edge));
    const std::vector<Made>& made = made_[edge->src()->id()];
    if (static_cast<size_t>(edge->src_output()) >= made.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(node), " comes before its input"));
    }
    return made[edge->src_output()];
  }

  static bool IsBackEdge(const Node& node, int input) {
    const Node* from;
    return node.IsMerge() && node.input_node(input, &from).ok() &&
           from->IsNextIteration();
  }

  absl::Status CloseLoops() {
    for (const BackEdge& it : back_edges_) {
      at_ = it.node->name();
      TF_ASSIGN_OR_RETURN(const Made made, InputOf(*it.node, it.input));
      TF_ASSIGN_OR_RETURN(const bool decided, AddInput(*it.node, made, it.type,
                                                       it.added, it.input));
      // The loop's ops took the value for decided.
      if (it.type == HOST_MEMORY && !decided && !HasNoPlace(made.type)) {
        return ReadsOnHost(*it.node);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status ReadsOnHost(const Node& node) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(node),
        " reads a value on the host that the step's inputs decide"));
  }

  struct BackEdge {
    const Node* node;
    Node* added;
    int input;
    MemoryType type;
  };

  Graph old_;
  std::unique_ptr<Graph> graph_;
  std::string at_;
  absl::flat_hash_map<const Node*, const Node*> send_of_;
  // By id in old_: the outputs, and the counterpart for control edges.
  std::vector<std::vector<Made>> made_;
  std::vector<Node*> nodes_;
  std::map<std::pair<Made, DataType>, Made> converted_;
  std::vector<BackEdge> back_edges_;
};

}  // namespace

ValuesOnDevice PutValuesOnDevice(const Graph& graph) {
  ValuesOnDevice values;
  const bool has_host_values =
      absl::c_any_of(graph.op_nodes(), [](const Node* node) {
        return IsHostArgument(*node) || IsCopyInPlace(*node) ||
               (IsEndOfPiece(*node) && EndIsOnHost(*node)) ||
               ComesFromHost(*node) || IsAssert(*node) ||
               CopiesHostInput(*node);
      });
  if (!has_host_values) return values;
  Mover mover(graph);
  auto made = mover.Make();
  for (const Node* node : graph.op_nodes()) {
    if (!made.ok() || !node->IsRecv() || !IsMessage(*node)) continue;
    if (const absl::Status status =
            KeyOf(*node, &values.messages.emplace_back());
        !status.ok()) {
      made = status;
    }
  }
  if (made.ok()) {
    values.graph = *std::move(made);
  } else {
    values.obstacle = std::string(made.status().message());
    values.obstacle_at = mover.at();
  }
  return values;
}

bool IsOnDevice(const Node& node) {
  bool marked = false;
  return TryGetNodeAttr(node.attrs(), kOnDevice, &marked) && marked;
}

}  // namespace tensorflow::multistream
