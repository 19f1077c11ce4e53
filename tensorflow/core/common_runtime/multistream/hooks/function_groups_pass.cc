// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// When are the groups of functions assigned? Before a session's or a function's
// graph is placed, if its nodes have groups.

#include <memory>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/step/renamed_leader.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow {
namespace multistream {
namespace {

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

const bool registered = [] {
  OptimizationPassRegistry::Global()->Register(
      OptimizationPassRegistry::PRE_PLACEMENT, kFunctionGroupsPhase,
      std::make_unique<AssignFunctionGroupsPass>());
  return true;
}();

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
