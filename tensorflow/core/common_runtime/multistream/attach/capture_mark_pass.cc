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

// Which graphs does tf.cuda.captured stand for? Asks capture_mark.h before the
// functions of a graph are inlined. (The parts are early_values_pass.cc's.)

#include <memory>

#include "tensorflow/core/common_runtime/multistream/config/process_options.h"
#include "tensorflow/core/common_runtime/multistream/plan/capture_mark.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow {
namespace multistream {
namespace {

class MarkCapturedPass : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    const absl::StatusOr<Options>& process = ProcessOptions();
    if (!process.ok() || !process->captures() || options.graph == nullptr ||
        *options.graph == nullptr) {
      return absl::OkStatus();
    }
    Graph* graph = options.graph->get();
    return MarkArgumentsAndResults(
        options.flib_def != nullptr ? *options.flib_def : graph->flib_def(),
        graph);
  }
};

const bool registered = [] {
  OptimizationPassRegistry::Global()->Register(
      OptimizationPassRegistry::PRE_PLACEMENT, kCaptureMarkPhase,
      std::make_unique<MarkCapturedPass>());
  return true;
}();

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
