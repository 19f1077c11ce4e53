// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What happens to a graph in TensorFlow's passes? Before it is placed, the
// groups of functions are assigned, if its nodes have groups. And captured
// steps need facts that other passes drop. Two passes mark them in the graph:
// before functions are inlined, the functions to capture (capture_mark.h);
// after the graph is partitioned by device, the same again, and the values that
// a step has to wait for (host_values.h). In between, loops are rewritten so
// that they can be captured (host_values.h).

#include <memory>
#include <vector>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/step/renamed_leader.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

class MarkWholeGraphPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (!MayCapture() || options.graph == nullptr ||
        *options.graph == nullptr) {
      return absl::OkStatus();
    }
    Graph* graph = options.graph->get();
    return MarkArgumentsAndResults(
        options.flib_def != nullptr ? *options.flib_def : graph->flib_def(),
        graph);
  }
};

class MoveValuesPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (MayCapture() && options.graph != nullptr && *options.graph != nullptr) {
      if (options.is_function_graph) CopyConstants(options.graph->get());
      MoveShapes(options.graph->get());
      TF_RETURN_IF_ERROR(TakeIntegersOnDevice(options.graph->get()));
      MoveLoopValues(options.graph->get());
      if (ProcessOptions()->emulated_gpus > 0) {
        MoveResults(options.graph->get());
      }
    }
    return absl::OkStatus();
  }
};

// A session's graph is placed before it is known what is fed, and any tensor
// may be, also that of a constant. This pass comes later: what takes a constant
// here does not take a fed value.
class CopyConstantsPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (MayCapture() && !options.is_function_graph &&
        options.graph != nullptr && *options.graph != nullptr) {
      CopyConstants(options.graph->get());
    }
    return absl::OkStatus();
  }
};

class MarkPartsPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    if (!MayCapture() || options.partition_graphs == nullptr) {
      return absl::OkStatus();
    }
    std::vector<Graph*> parts;
    for (const auto& [device, graph] : *options.partition_graphs) {
      parts.push_back(graph.get());
    }
    MarkEarlyValues(parts);
    MarkParts(parts);
    return absl::OkStatus();
  }
};

bool NodesHaveGroups(const DeviceSet* devices) {
  if (devices == nullptr || !IsEnabled()) return false;
  for (Device* device : devices->devices()) {
    GroupLeader* leader = LeaderOf(device);
    if (leader != nullptr && leader->session_streams().groups > 1 &&
        leader->session_streams().node_level) {
      return true;
    }
  }
  return false;
}

class AssignFunctionGroupsPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    return AssignFunctionGroups(options, NodesHaveGroups(options.device_set));
  }
};

// Runs before all other passes, such as those that make XLA's clusters.
constexpr int kFirstPhase = 0;
// Runs after all other passes.
constexpr int kLastPhase = 1000;

const bool registered = [] {
  auto* passes = OptimizationPassRegistry::Global();
  passes->Register(OptimizationPassRegistry::PRE_PLACEMENT, kCaptureMarkPhase,
                   std::make_unique<MarkWholeGraphPass>());
  passes->Register(OptimizationPassRegistry::PRE_PLACEMENT,
                   kFunctionGroupsPhase,
                   std::make_unique<AssignFunctionGroupsPass>());
  passes->Register(OptimizationPassRegistry::POST_PLACEMENT, kLastPhase,
                   std::make_unique<MoveValuesPass>());
  passes->Register(OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, kFirstPhase,
                   std::make_unique<CopyConstantsPass>());
  passes->Register(OptimizationPassRegistry::POST_PARTITIONING, kLastPhase,
                   std::make_unique<MarkPartsPass>());
  return true;
}();

}  // namespace
}  // namespace tensorflow::multistream
