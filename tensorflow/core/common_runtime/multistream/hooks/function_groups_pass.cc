/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

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
