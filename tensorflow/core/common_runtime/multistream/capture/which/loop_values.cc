// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/loop_values.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/control_flow.h"

namespace tensorflow {
namespace multistream {
namespace {

struct Loop {
  const Node* condition = nullptr;
  std::vector<Node*> elsewhere;  // pass-through nodes on other devices
  bool computes_elsewhere = false;
};

bool HandsOn(const Node& node) {
  return node.IsEnter() || node.IsMerge() || node.IsSwitch() ||
         node.IsNextIteration() || node.IsExit() || node.IsIdentity() ||
         node.IsConstant() || node.type_string() == "NoOp";
}

bool HasKernelOnGpu(const Node& node) {
  return FindKernelDef(DeviceType(DEVICE_GPU), node.def(), /*def=*/nullptr,
                       /*kernel_class_name=*/nullptr)
      .ok();
}

}  // namespace

void MoveLoopValues(Graph* graph) {
  bool has_loops = false;
  for (const Node* node : graph->op_nodes()) {
    has_loops = has_loops || node->IsLoopCond();
  }
  if (!has_loops) return;
  // Loops are found along edges from the source, which constants may lack.
  FixupSourceAndSinkEdges(graph);
  std::vector<ControlFlowInfo> frames;
  std::vector<std::string> not_reached;
  if (!BuildControlFlowInfo(graph, &frames, &not_reached).ok() ||
      !not_reached.empty()) {
    return;
  }
  absl::flat_hash_map<std::string, Loop> loops;
  for (const Node* node : graph->op_nodes()) {
    if (node->IsLoopCond()) {
      loops[frames[node->id()].frame_name].condition = node;
    }
  }
  for (Node* node : graph->op_nodes()) {
    const auto found = loops.find(frames[node->id()].frame_name);
    if (found == loops.end()) continue;
    Loop& loop = found->second;
    if (node->assigned_device_name() ==
        loop.condition->assigned_device_name()) {
      continue;
    }
    if (HandsOn(*node) && HasKernelOnGpu(*node)) {
      loop.elsewhere.push_back(node);
    } else {
      loop.computes_elsewhere = true;
    }
  }
  for (const auto& [frame, loop] : loops) {
    const std::string& device = loop.condition->assigned_device_name();
    if (loop.computes_elsewhere || !IsOfType(device, DEVICE_GPU)) continue;
    for (Node* node : loop.elsewhere) node->set_assigned_device_name(device);
  }
}

}  // namespace multistream
}  // namespace tensorflow
