// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes without a device go to an emulated GPU? The nodes for which
// TensorFlow has a GPU kernel, as on a machine with a GPU. (To the placer an
// emulated GPU is a CPU, and among CPUs it prefers CPU:0.)

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {
namespace {

// Sets of nodes that must be on one device (union-find): nodes with `loc:@name`
// in their attribute _class.
class Colocation {
 public:
  explicit Colocation(const Graph& graph) {
    for (const Node* node : graph.op_nodes()) {
      std::vector<std::string> classes;
      TryGetNodeAttr(node->attrs(), kColocationAttrName, &classes);
      for (absl::string_view other : classes) {
        if (absl::ConsumePrefix(&other, kColocationGroupPrefix)) {
          Join(node->name(), std::string(other));
        }
      }
    }
  }

  // The name that represents the node's set.
  std::string Root(std::string name) const {
    for (auto it = parent_.find(name); it != parent_.end();
         it = parent_.find(name)) {
      name = it->second;
    }
    return name;
  }

 private:
  void Join(const std::string& one, const std::string& other) {
    const std::string root = Root(one);
    const std::string other_root = Root(other);
    if (root != other_root) parent_[root] = other_root;
  }

  absl::flat_hash_map<std::string, std::string> parent_;
};

bool MayMoveToGpu(const Node& node) {
  return node.requested_device().empty() &&
         node.assigned_device_name().empty() && !node.IsArg() &&
         !node.IsRetval() &&
         FindKernelDef(DeviceType(DEVICE_GPU), node.def(), nullptr, nullptr)
             .ok();
}

class PlaceOnEmulatedGpu : public GraphOptimizationPass {
 public:
  absl::Status Run(const GraphOptimizationPassOptions& options) override {
    // A function with its own device (an input pipeline on the CPU) stays
    // there.
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
    const Graph& graph = **options.graph;
    const Colocation colocation(graph);
    absl::flat_hash_set<std::string> stay;
    for (const Node* node : graph.op_nodes()) {
      if (!MayMoveToGpu(*node)) stay.insert(colocation.Root(node->name()));
    }
    for (Node* node : graph.op_nodes()) {
      if (!stay.contains(colocation.Root(node->name()))) {
        node->set_requested_device(gpu->name());
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

void PlaceOnEmulatedGpus() {
  OptimizationPassRegistry::Global()->Register(
      OptimizationPassRegistry::PRE_PLACEMENT, /*phase=*/0,
      std::make_unique<PlaceOnEmulatedGpu>());
}

}  // namespace tensorflow::multistream
