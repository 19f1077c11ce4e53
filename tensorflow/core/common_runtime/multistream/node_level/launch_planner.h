// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group launches each kernel of a graph, and what does the group wait for
// first? Turns the plan of the nodes (node_plan.h) into launches by kernel, as
// a run needs them (node_level_run.h). Each node-level executor has one.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_LAUNCH_PLANNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_LAUNCH_PLANNER_H_

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/session_config.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_run.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_plan.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

class LaunchPlanner {
 public:
  // `options` must outlive the planner. `is_emulated`: the GPU is emulated.
  // `file` and `library` may be nullptr.
  LaunchPlanner(const Options& options, const SessionStreams& streams,
                bool is_emulated, const StreamFile* file,
                const FunctionLibraryDefinition* library)
      : options_(options),
        streams_(streams),
        is_emulated_(is_emulated),
        file_(file),
        library_(library) {}

  // Call before the first plan. Copies the graph. `kernels` is by node name;
  // the kernels must outlive the planner.
  void SetGraph(const Graph& graph,
                absl::flat_hash_map<std::string, OpKernel*> kernels);

  const Graph& graph() const { return *graph_; }
  // The ops' times, which profiled steps write and later plans read.
  StepProfile* profile() { return &profile_; }

  // Whether a node has a policy whose plan has to be measured.
  absl::StatusOr<bool> HasNodesToTune() const;

  // The plan of steps whose caller's group is `caller_group`. Planning for the
  // leader also marks the kernels that the next executor runs in threads of
  // their own, so only one thread at a time may do it.
  absl::StatusOr<std::shared_ptr<const Launches>> Plan(
      int caller_group, const PlanGuess& guess) const;

  // Adds the groups of `launches`' nodes to the SavedPlan.
  void AddToSavedPlan(const Launches& launches) const;

 private:
  NodePlanOptions PlanOptions(int caller_group) const;
  NodeFacts FactsOf(const Node& node) const;
  // Whether the op may block its thread until another op of the step has run,
  // as taking from a staging area does.
  bool MayBlock(const Node& node) const;
  OpTraits TraitsOf(const Node& node, const OpKernel& kernel,
                    const NodePlan& plan) const;

  const Options& options_;
  const SessionStreams streams_;
  const bool is_emulated_;
  const StreamFile* const file_;
  const FunctionLibraryDefinition* const library_;
  absl::flat_hash_map<std::string, OpKernel*> kernels_;  // by node
  std::unique_ptr<Graph> graph_;
  // Whether a list may come from elsewhere, as from a function that it calls.
  bool gets_lists_ = false;
  StepProfile profile_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_LAUNCH_PLANNER_H_
