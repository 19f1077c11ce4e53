// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/assigned_nodes.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

constexpr char kEarly[] = "_multi_stream_early";
constexpr char kAfterArguments[] = "_multi_stream_after_arguments";
constexpr char kAfter[] = "_multi_stream_after";
constexpr char kInBranch[] = "_multi_stream_in_branch";

// Whether the node might wait for another op of the step without an edge
// between them, as queue ops do. Variable ops do not wait; a counter of
// training steps is often on the host. Dataset iterators do not wait for the
// step either: a data set has its own functions and threads. Nor do lookups in
// tables, ops that draw random numbers, asserts, and what XLA compiles.
bool MayWait(const Node& node) {
  static const auto* do_not =
      new absl::flat_hash_set<absl::string_view>{"IteratorFromStringHandleV2",
                                                 "IteratorGetNext",
                                                 "IteratorGetNextAsOptional",
                                                 "IteratorGetNextSync",
                                                 "IteratorV2",
                                                 "ReadVariableOp",
                                                 "VarHandleOp",
                                                 "AnonymousHashTable",
                                                 "HashTableV2",
                                                 "LookupTableFindV2",
                                                 "LookupTableSizeV2",
                                                 "MutableHashTableV2",
                                                 "ResourceGather",
                                                 "ResourceGatherNd"};
  const absl::string_view op = node.type_string();
  return node.op_def().is_stateful() && !node.IsArg() &&
         !do_not->contains(op) && !ChangesVariables(op) &&
         !DrawsRandomNumbers(op) && !IsAssert(node) &&
         !IsCompiledCall(node.def());
}

using Sent = absl::flat_hash_map<Transfer, const Node*>;

// Whether the node receives an argument that a step on a GPU passes on.
bool ReceivesArgument(const Node& node, const Sent& sent) {
  const auto found = node.IsRecv() ? sent.find(TransferOf(node)) : sent.end();
  return found != sent.end() && PassesArgumentOn(*found->second) &&
         IsOfType(found->second->assigned_device_name(), DEVICE_GPU);
}

// Whether no ancestor of the node is a receive or may wait. Arguments of GPUs
// may be received if `sent` is given.
bool IsEarly(const Node& node, const Sent* sent) {
  return !WalkFinds(node, [&node, sent](const Node& next, auto go_to) {
    for (const Node* before : next.in_nodes()) {
      if (!before->IsOp()) continue;
      if (sent != nullptr && ReceivesArgument(*before, *sent)) continue;
      if (before->IsRecv() || MayWait(*before)) {
        VLOG(2) << node.name() << " is not early, as it comes after "
                << before->type_string() << " " << before->name();
        return true;
      }
      go_to(before);
    }
    return false;
  });
}

bool IsOnGpu(const Graph& part) {
  return absl::c_any_of(part.op_nodes(), [](const Node* node) {
    return IsOfType(node->assigned_device_name(), DEVICE_GPU);
  });
}

// False if not all loops are known.
bool FindLoops(Graph* graph, std::vector<ControlFlowInfo>* info) {
  // Loops are found along edges from the source, which constants may lack.
  FixupSourceAndSinkEdges(graph);
  std::vector<std::string> not_reached;
  return BuildControlFlowInfo(graph, info, &not_reached).ok() &&
         not_reached.empty();
}

// The names of the loops that each node is in, of nodes in loops.
using Frames = absl::flat_hash_map<const Node*, std::set<std::string>>;

// False if the loops of `part` cannot be found.
bool AddFrames(Graph* part, Frames* frames) {
  if (absl::c_none_of(part->op_nodes(),
                      [](const Node* node) { return node->IsEnter(); })) {
    return true;
  }
  std::vector<ControlFlowInfo> info;
  if (!FindLoops(part, &info)) return false;
  for (const Node* node : part->op_nodes()) {
    for (const ControlFlowInfo* at = &info[node->id()]; !at->frame_name.empty();
         at = &info[at->parent_frame->id()]) {
      (*frames)[node].insert(at->frame_name);
    }
  }
  return true;
}

// What the value of `send` waits for on the device that receives it.
ValueWaits FindWaits(const Node& send, const Transfer& transfer,
                     const Sent& sent, const Frames& frames) {
  const std::string& device = std::get<2>(transfer);
  const auto frames_of_send = frames.find(&send);
  // Whether `before` gives `next` what an earlier iteration has computed, of a
  // loop that `send` is in. Each iteration sends values of its own.
  const auto is_of_earlier_iteration = [&](const Node& before,
                                           const Node& next) {
    if (!before.IsNextIteration() || frames_of_send == frames.end()) {
      return false;
    }
    const auto found = frames.find(&next);
    return found != frames.end() &&
           absl::c_includes(frames_of_send->second, found->second);
  };
  // Looks at what comes before `send`, on all devices. Returns whether `look`
  // finds something, or a value has no sender.
  const auto walk = [&](bool into_earlier_iterations,
                        absl::FunctionRef<bool(const Node&)> look) {
    return WalkFinds(send, [&](const Node& next, auto go_to) {
      if (next.IsRecv()) {
        const auto found = sent.find(TransferOf(next));
        if (found == sent.end()) return true;
        go_to(found->second);
        return look(next);
      }
      for (const Node* before : next.in_nodes()) {
        if (before->IsOp() && (into_earlier_iterations ||
                               !is_of_earlier_iteration(*before, next))) {
          go_to(before);
        }
      }
      return look(next);
    });
  };
  ValueWaits waits;
  waits.known = !walk(true, [&](const Node& next) {
    if (next.IsSwitch()) waits.in_branch = true;
    return next.IsOp() && MayWait(next) && !next.IsSend() && !next.IsRecv();
  });
  if (!waits.known) return waits;
  walk(false, [&](const Node& next) {
    if (next.IsRecv() && std::get<1>(TransferOf(next)) == device) {
      waits.sends.push_back(std::get<0>(TransferOf(next)));
    }
    return false;
  });
  return waits;
}

struct Loop {
  const Node* condition = nullptr;
  std::vector<Node*> elsewhere;  // pass-through nodes on other devices
  bool computes_elsewhere = false;
};

bool ComputesNothing(const Node& node) {
  return HandsValueOn(node) || node.IsConstant() ||
         node.type_string() == "NoOp";
}

// Whether an op of the device takes what the node gives, or hands on.
bool GoesTo(const std::string& device, const Node& node) {
  const Node* from = &node;
  while (from->IsIdentity() && from->input_node(0, &from).ok()) {
  }
  return WalkFinds(*from, [&](const Node& next, auto go_to) {
    for (const Edge* edge : next.out_edges()) {
      if (edge->IsControlEdge()) continue;
      if (edge->dst()->assigned_device_name() == device) return true;
      if (HandsValueOn(*edge->dst())) go_to(edge->dst());
    }
    return false;
  });
}

bool HasKernelOnGpu(const Node& node) {
  return FindKernelDef(DeviceType(DEVICE_GPU), node.def(), /*def=*/nullptr,
                       /*kernel_class_name=*/nullptr)
      .ok();
}

// The transfers of early values between GPUs by which each of two GPUs, or each
// of several, gets something of the next.
std::set<Transfer> TransfersInCycles(
    const Sent& sent, absl::FunctionRef<bool(const Node*)> is_early) {
  std::map<std::string, std::set<std::string>> after;  // of each GPU
  const auto gpus_of = [](const Transfer& transfer, const Node* send) {
    return std::pair(send->assigned_device_name(), std::get<2>(transfer));
  };
  const auto is_between_gpus = [&](const Transfer& transfer, const Node* send) {
    const auto [from, to] = gpus_of(transfer, send);
    return from != to && IsOfType(from, DEVICE_GPU) &&
           IsOfType(to, DEVICE_GPU) && is_early(send);
  };
  std::vector<Transfer> found;
  for (const auto& [transfer, send] : sent) {
    if (!is_between_gpus(transfer, send)) continue;
    const auto [from, to] = gpus_of(transfer, send);
    after[from].insert(to);
    found.push_back(transfer);
  }
  const auto reaches = [&after](const std::string& from,
                                const std::string& to) {
    std::set<std::string> seen = {from};
    std::vector<std::string> next = {from};
    while (!next.empty()) {
      const std::string gpu = std::move(next.back());
      next.pop_back();
      if (gpu == to) return true;
      for (const std::string& it : after[gpu]) {
        if (seen.insert(it).second) next.push_back(it);
      }
    }
    return false;
  };
  std::set<Transfer> in_cycles;
  for (const Transfer& transfer : found) {
    const auto [from, to] = gpus_of(transfer, sent.at(transfer));
    if (reaches(to, from)) in_cycles.insert(transfer);
  }
  return in_cycles;
}

}  // namespace

void MarkEarlyValues(absl::Span<Graph* const> parts) {
  absl::flat_hash_map<Transfer, Node*> received;
  Sent sent;
  for (Graph* part : parts) {
    for (Node* node : part->op_nodes()) {
      if (node->IsRecv()) received[TransferOf(*node)] = node;
      if (node->IsSend()) sent[TransferOf(*node)] = node;
    }
  }
  Frames frames;
  bool has_frames = true;
  for (Graph* part : parts) has_frames = has_frames && AddFrames(part, &frames);
  const bool several_gpus = absl::c_count_if(parts, [](const Graph* part) {
                              return IsOnGpu(*part);
                            }) > 1;
  const auto is_early = [](const Node* send) {
    return IsEarly(*send, nullptr);
  };
  const std::set<Transfer> in_cycles = TransfersInCycles(sent, is_early);
  for (const auto& [transfer, send] : sent) {
    const auto found = received.find(transfer);
    if (found == received.end()) continue;
    Node* receive = found->second;
    const bool early = is_early(send);
    if (early) {
      receive->AddAttr(kEarly, true);
    } else if (IsEarly(*send, &sent)) {
      receive->AddAttr(kAfterArguments, true);
    }
    // Of two GPUs' parts that are cut into pieces, each may wait for the other:
    // a piece ends, and gives what is early in it, after it has begun with all
    // that it takes.
    if ((several_gpus && !early) || in_cycles.count(transfer) > 0) continue;
    if (!has_frames) continue;
    const ValueWaits waits = FindWaits(*send, transfer, sent, frames);
    if (!waits.known) continue;
    receive->AddAttr(kAfter, waits.sends);
    receive->AddAttr(kInBranch, waits.in_branch);
  }
}

ValueWaits WaitsOf(const Node& receive) {
  ValueWaits waits;
  waits.known = TryGetNodeAttr(receive.attrs(), kAfter, &waits.sends) &&
                TryGetNodeAttr(receive.attrs(), kInBranch, &waits.in_branch);
  return waits;
}

bool IsEarlyValue(const Node& node) {
  bool early = false;
  return TryGetNodeAttr(node.attrs(), kEarly, &early) && early;
}

bool ComesAfterArguments(const Node& node) {
  bool after = false;
  return IsEarlyValue(node) ||
         (TryGetNodeAttr(node.attrs(), kAfterArguments, &after) && after);
}

bool PassesArgumentOn(const Node& send) {
  const Node* argument;
  return send.IsSend() && !IsCheck(send) &&
         send.input_node(0, &argument).ok() &&
         argument->type_string() == "_Arg" && !IsEndOfPiece(*argument) &&
         DataTypeCanUseMemcpy(argument->output_type(0)) &&
         IsOfType(std::get<2>(TransferOf(send)), DEVICE_CPU) &&
         absl::c_none_of(send.in_edges(), [](const Edge* edge) {
           return edge->IsControlEdge() && edge->src()->IsOp();
         });
}

void CopyConstants(Graph* graph) {
  // More would take the host's memory, for ops that are slow anyway.
  constexpr int64_t kMostElements = 1 << 16;
  const auto may_be_copied = [](const Node& node) {
    const TensorProto* value = nullptr;
    return IsAlwaysConstant(node) &&
           TryGetNodeAttr(node.attrs(), "value", &value) &&
           TensorShape(value->tensor_shape()).num_elements() <= kMostElements;
  };
  std::vector<const Edge*> sent;
  for (const Edge* edge : graph->edges()) {
    const Node* node = edge->src();
    if (!edge->IsControlEdge() &&
        IsOfType(node->assigned_device_name(), DEVICE_GPU) &&
        IsOfType(edge->dst()->assigned_device_name(), DEVICE_CPU) &&
        may_be_copied(*node)) {
      sent.push_back(edge);
    }
  }
  absl::flat_hash_map<std::pair<const Node*, std::string>, Node*> copies;
  for (const Edge* edge : sent) {
    Node* taker = edge->dst();
    const std::string& device = taker->assigned_device_name();
    Node*& copy = copies[{edge->src(), device}];
    if (copy == nullptr) {
      copy = graph->CopyNode(edge->src());
      copy->set_name(
          graph->NewName(absl::StrCat(edge->src()->name(), "/on_host")));
      copy->set_requested_device(device);
      copy->set_assigned_device_name(device);
    }
    TF_CHECK_OK(graph->UpdateEdge(copy, 0, taker, edge->dst_input()));
  }
}

void MoveLoopValues(Graph* graph) {
  if (absl::c_none_of(graph->op_nodes(),
                      [](const Node* node) { return node->IsLoopCond(); })) {
    return;
  }
  std::vector<ControlFlowInfo> frames;
  if (!FindLoops(graph, &frames)) return;
  absl::flat_hash_map<std::string, Loop> loops;
  for (const Node* node : graph->op_nodes()) {
    if (node->IsLoopCond()) {
      loops[frames[node->id()].frame_name].condition = node;
    }
  }
  for (Node* node : graph->op_nodes()) {
    const auto found = loops.find(frames[node->id()].frame_name);
    if (found == loops.end()) continue;
    Loop& loop = found->second;
    if (node->assigned_device_name() ==
        loop.condition->assigned_device_name()) {
      continue;
    }
    if (ComputesNothing(*node) && HasKernelOnGpu(*node)) {
      loop.elsewhere.push_back(node);
    } else {
      loop.computes_elsewhere = true;
    }
  }
  for (const auto& [frame, loop] : loops) {
    const std::string& device = loop.condition->assigned_device_name();
    if (loop.computes_elsewhere || !IsOfType(device, DEVICE_GPU)) continue;
    for (Node* node : loop.elsewhere) node->set_assigned_device_name(device);
  }
}

void MoveShapes(Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    const Edge* tensor = nullptr;
    if (!GivesShape(*node) || !node->requested_device().empty() ||
        !IsOfType(node->assigned_device_name(), DEVICE_CPU) ||
        node->num_inputs() != 1 || !node->input_edge(0, &tensor).ok() ||
        !DataTypeCanUseMemcpy(node->input_type(0)) || !HasKernelOnGpu(*node)) {
      continue;
    }
    std::string device;
    bool is_moved = true;
    for (const Edge* edge : node->out_edges()) {
      if (edge->IsControlEdge()) continue;
      const std::string& of_user = edge->dst()->assigned_device_name();
      if (device.empty()) device = of_user;
      is_moved = is_moved && of_user == device;
    }
    if (is_moved && IsOfType(device, DEVICE_GPU) &&
        GoesTo(device, *tensor->src())) {
      node->set_assigned_device_name(device);
    }
  }
}

absl::Status TakeIntegersOnDevice(Graph* graph) {
  std::vector<const Edge*> taken;
  for (const Edge* edge : graph->edges()) {
    const Node& node = *edge->dst();
    if (edge->IsControlEdge() || !GivesShape(node) || node.num_inputs() != 1 ||
        node.input_type(0) != DT_INT32 ||
        !IsOfType(node.assigned_device_name(), DEVICE_GPU) ||
        node.assigned_device_name() != edge->src()->assigned_device_name()) {
      continue;
    }
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(MemoryTypesForNode(graph->op_registry(), DEVICE_GPU,
                                          edge->src()->def(), &inputs,
                                          &outputs));
    if (outputs[edge->src_output()] == DEVICE_MEMORY) taken.push_back(edge);
  }
  for (const Edge* edge : taken) {
    Node* node = edge->dst();
    Node* bits;
    TF_RETURN_IF_ERROR(AddAssigned(
        NodeBuilder(graph->NewName(absl::StrCat(node->name(), "/bits")),
                    "Bitcast")
            .Input(edge->src(), edge->src_output())
            .Attr("type", DT_FLOAT),
        node->assigned_device_name(), graph, &bits));
    node->AddAttr("T", DT_FLOAT);
    TF_RETURN_IF_ERROR(graph->UpdateEdge(bits, 0, node, 0));
  }
  return absl::OkStatus();
}

void MoveResults(Graph* graph) {
  std::vector<Node*> order;
  FixupSourceAndSinkEdges(graph);
  GetReversePostOrder(*graph, &order);
  for (Node* node : order) {
    const bool is_result =
        node->type_string() == "Identity" || node->type_string() == "NoOp";
    if (!is_result || !node->requested_device().empty()) continue;
    std::string device;
    bool is_moved = IsOfType(node->assigned_device_name(), DEVICE_CPU);
    for (const Node* input : node->in_nodes()) {
      if (!input->IsOp()) continue;
      if (device.empty()) device = input->assigned_device_name();
      is_moved = is_moved && input->assigned_device_name() == device;
    }
    if (is_moved && IsOfType(device, DEVICE_GPU)) {
      node->set_assigned_device_name(device);
    }
  }
}

}  // namespace tensorflow::multistream
