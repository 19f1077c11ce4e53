// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which graphs may run on any stream group, and which must run on the leader?
// Executors ask when they are made, OpScopes for each op. Pure graph code,
// without devices.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

struct GraphTraits {
  // Empty if the graph may run on any group. Otherwise the first reason found
  // why the graph must run on the leader; names the node.
  std::string leader_only;
  // Nodes that read variables or other state that the leader owns.
  absl::flat_hash_set<std::string> readers;
  // The graph has reference variables; called functions may get their memory.
  bool has_references = false;
  // The graph takes tensors from its call frame. Handles of resources do not
  // count.
  bool takes_tensors = false;
  // The graph returns tensors through its call frame.
  bool has_return_values = false;
};

// `library` may be nullptr. Looks into the functions that the graph calls; a
// function that is not in the library counts as changing state.
GraphTraits ClassifyGraph(const Graph& graph,
                          const FunctionLibraryDefinition* library);

// Whether a recurrent layer of cuDNN, or its gradient, is without dropout: then
// no random state outlives the step.
bool HasNoDropout(const NodeDef& node);

// Null if a graph on the host only passes tensors on: if the graph has only
// arguments, results, constants, identities, sends and receives.
const Node* FirstComputingOp(const Graph& graph);

// Whether devices wait for each other in the node.
bool IsCollective(const Node& node);

// Whether the op's kernel has a generator of random numbers.
bool DrawsRandomNumbers(absl::string_view op);

// Whether XLA compiles the function that the node calls (`jit_compile=True`).
// The node's kernel then launches the compiled code itself.
bool IsCompiledCall(const NodeDef& node);

// Whether the node only calls a function, whose nodes do the work as ops of
// their own.
bool IsCall(const NodeDef& node, const FunctionLibraryDefinition* library);

// Whether the op reads a resource's value and never changes it.
bool OnlyReads(absl::string_view op);

// For node level: why the node itself must run on the leader. The node may
// change a variable or other state that outlives the step, keeps tensors in a
// resource, or has a reference to a variable. Empty if the node may run
// anywhere. Nodes of called functions are judged separately.
std::string LeaderReason(const Node& node,
                         const FunctionLibraryDefinition* library);

// Whether the node itself may read an alias of a reference variable's memory,
// in a step with reference variables. False for calls and receives: they wait
// for other nodes, and those nodes may read an alias.
bool MayReadReference(const NodeDef& node,
                      const FunctionLibraryDefinition* library);

// Whether a kernel itself may change a variable: the kernel takes a resource or
// reference, is not known to only read or forward it, and is not a call, which
// leaves the work to a function's nodes. A function that XLA compiles is looked
// at in `library`; if that is nullptr, the function may change the variable.
bool MayChangeState(const OpKernel& kernel,
                    const FunctionLibraryDefinition* library);

// Whether an op that changes a variable may make an input's buffer the
// variable's value, instead of computing a new value.
bool MayKeepInputs(absl::string_view op);

// Whether an op that reads variables passes their memory on to an op without
// the variables as inputs, as _XlaCompile does to _XlaRun.
bool PassesVariablesOn(absl::string_view op);

// Whether the node hands one value on: an identity, or a part of a loop or
// branch.
bool HandsValueOn(const Node& node);

// Whether the op's results depend only on its inputs' shapes.
bool GivesShape(const Node& node);

// Walks from `from` to each node once, in no particular order, until `look`
// returns true for a node. `look` calls `go_to` with the nodes that come next.
// Returns whether `look` has returned true.
bool WalkFinds(
    const Node& from,
    absl::FunctionRef<bool(const Node& node,
                           absl::FunctionRef<void(const Node*)> go_to)>
        look);

// Whether the op gives a shape, or hands its input's memory on: launches
// nothing.
bool LaunchesNothing(absl::string_view op);

// Whether the node is a constant that no branch or loop decides about, which a
// control edge would lead to.
bool IsAlwaysConstant(const Node& node);

// The ops of a GPU's graph that launch kernels; an op in a loop counts once.
int CountLaunches(const Graph& graph);

// Whether a GPU's op has all its inputs and outputs on the host, and at least
// one.
bool IsOnHost(const Node& node);

// Whether a device's full name says that it has this type, as DEVICE_GPU.
bool IsOfType(absl::string_view device, absl::string_view type);

// Whether kernels of this op keep device memory between calls, so that groups
// must not share one.
bool KeepsScratch(const std::string& op);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_
