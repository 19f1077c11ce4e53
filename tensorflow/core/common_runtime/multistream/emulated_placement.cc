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

// On emulated GPUs, which graph nodes go to the GPU that nobody placed? Those
// for which TensorFlow has a GPU kernel, as on a machine with a GPU. (An
// emulated GPU is a CPU to the placer, which prefers CPU:0 among equals.)

#include <string>

#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/multistream/options.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {
namespace {

class PlaceOnEmulatedGpu : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    // A function that has a device of its own (an input pipeline's, the CPU)
    // stays there.
    if (options.graph == nullptr || options.device_set == nullptr ||
        options.default_function_device != nullptr) {
      return absl::OkStatus();
    }
    const Device* gpu = nullptr;
    for (const Device* device : options.device_set->devices()) {
      if (device->parsed_name().type == DEVICE_GPU) {
        gpu = device;
        break;
      }
    }
    if (gpu == nullptr) return absl::OkStatus();
    for (Node* node : (*options.graph)->op_nodes()) {
      if (!node->requested_device().empty() ||
          !node->assigned_device_name().empty() || node->IsArg() ||
          node->IsRetval() || node->def().attr().count("_class") > 0) {
        continue;
      }
      if (FindKernelDef(DeviceType(DEVICE_GPU), node->def(), nullptr, nullptr)
              .ok()) {
        node->set_requested_device(gpu->name());
      }
    }
    return absl::OkStatus();
  }
};

const bool registered = [] {
  const auto& options = ProcessOptions();
  if (options.ok() && options->emulated_gpus > 0) {
    OptimizationPassRegistry::Global()->Register(
        OptimizationPassRegistry::PRE_PLACEMENT, /*phase=*/0,
        std::make_unique<PlaceOnEmulatedGpu>());
  }
  return true;
}();

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
