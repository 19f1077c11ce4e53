// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which graphs may run on any stream group, and which must run on the leader?
// Executors ask when they are made, OpScopes for each op. Pure graph code: no
// device in it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_

#include <string>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

struct GraphTraits {
  // Empty if the graph may run on any group. Else the first reason found why
  // it must run on the leader, naming the node.
  std::string leader_only;
  // Nodes that read variables or other state that the leader owns.
  absl::flat_hash_set<std::string> readers;
  // The graph has reference variables, and what it calls may take their memory.
  bool has_references = false;
  // The graph takes tensors or resources from its call frame.
  bool has_arguments = false;
  // The graph returns tensors through its call frame.
  bool has_return_values = false;
};

// `library` may be nullptr. Functions that the graph calls are looked into;
// one that is not in the library counts as changing state.
GraphTraits ClassifyGraph(const Graph& graph,
                          const FunctionLibraryDefinition* library);

// Whether the node is a recurrent layer of cuDNN that keeps no random state for
// dropout from one step to the next. Its kernel, which all groups of a session
// share, keeps descriptors, behind a lock under which it launches.
bool IsRecurrentLayer(const NodeDef& node);

// Whether the node's work is done by the nodes of a function, each for itself.
bool IsCall(const NodeDef& node, const FunctionLibraryDefinition* library);

// Why the node itself must run on the leader when each node has a group of its
// own: it may change a variable or other state that outlives the step, keeps
// tensors in a resource, or holds a reference to a variable. Empty if it need
// not. The nodes of functions that it calls speak for themselves.
std::string LeaderReason(const Node& node,
                         const FunctionLibraryDefinition* library);

// Whether the node itself may read memory that is an alias of a reference
// variable, in a step that has some. Not so a call, nor what receives: those
// wait for other nodes, which may read it.
bool MayReadReference(const NodeDef& node,
                      const FunctionLibraryDefinition* library);

// Whether a kernel may itself change a variable that it takes: it has a
// resource or reference, is not known to only read or hand it on, and does not
// leave the work to a function's own nodes.
bool MayChangeState(const OpKernel& kernel,
                    const FunctionLibraryDefinition* library);

// Whether an op that changes a variable may make one of its inputs the
// variable's value, rather than compute a new one from it.
bool MayKeepInputs(absl::string_view op);

// Whether an op that reads variables hands their memory on to another op,
// which does not have them for inputs: _XlaCompile does, to _XlaRun.
bool PassesVariablesOn(absl::string_view op);

// Whether a device's full name is that of one of a type, such as DEVICE_GPU.
bool IsOfType(absl::string_view device, absl::string_view type);

// Whether kernels of this op keep device memory between calls, so that groups
// must not share one.
bool KeepsScratch(const std::string& op);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_GRAPH_TRAITS_H_
