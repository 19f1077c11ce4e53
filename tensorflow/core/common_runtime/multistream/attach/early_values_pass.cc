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

// What does a captured step have to wait for, and which steps are captured?
// Asks early_values.h and capture_mark.h once a graph has been divided among
// its devices.

#include <memory>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/config/process_options.h"
#include "tensorflow/core/common_runtime/multistream/plan/capture_mark.h"
#include "tensorflow/core/common_runtime/multistream/plan/early_values.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow {
namespace multistream {
namespace {

class MarkEarlyValuesPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    const absl::StatusOr<Options>& process = ProcessOptions();
    if (!process.ok() || !process->captures() ||
        options.partition_graphs == nullptr) {
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

// After all others.
constexpr int kPhase = 1000;

const bool registered = [] {
  OptimizationPassRegistry::Global()->Register(
      OptimizationPassRegistry::POST_PARTITIONING, kPhase,
      std::make_unique<MarkEarlyValuesPass>());
  return true;
}();

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
