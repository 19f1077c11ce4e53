// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/node_level/policy/group_knowledge.h"

namespace tensorflow::multistream {
namespace {

struct Lane {
  using Ready = std::pair<double, int>;  // since when, and the node

  double Start() const { return std::max(free_us, ready.top().first); }

  std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
  double free_us = 0;
  bool used = false;
};

}  // namespace

StepModel::StepModel(const PolicyGraph& graph, const PolicyOptions& options)
    : graph_(graph),
      options_(options),
      inputs_(InputsOf(graph)),
      consumers_(Reversed(inputs_)) {}

StepEstimate StepModel::Estimate(const std::vector<int>& groups) const {
  StepEstimate estimate;
  GroupKnowledge knowledge(inputs_, options_);
  std::vector<Lane> lanes(options_.group_count);
  std::vector<int> inputs_left(graph_.size());
  std::vector<double> ready_us(graph_.size());
  for (size_t i = 0; i < graph_.size(); ++i) {
    estimate.one_stream_us += graph_[i].cost_us;
    inputs_left[i] = static_cast<int>(inputs_[i].size());
    if (inputs_left[i] == 0) {
      lanes[groups[i]].ready.emplace(0, static_cast<int>(i));
    }
  }
  // The node that starts next makes no node ready before its own start, so the
  // first of each lane's queue is really the lane's next node.
  for (;;) {
    Lane* next = nullptr;
    for (Lane& lane : lanes) {
      if (lane.ready.empty()) continue;
      if (next == nullptr || lane.Start() < next->Start()) next = &lane;
    }
    if (next == nullptr) break;
    const int node = next->ready.top().second;
    const int waits = knowledge.Run(node, groups[node]);
    next->free_us =
        next->Start() + waits * options_.wait_us + graph_[node].cost_us;
    next->ready.pop();
    next->used = true;
    estimate.waits += waits;
    for (int consumer : consumers_[node]) {
      ready_us[consumer] = std::max(ready_us[consumer], next->free_us);
      if (--inputs_left[consumer] > 0) continue;
      lanes[groups[consumer]].ready.emplace(ready_us[consumer], consumer);
    }
  }
  for (const Lane& lane : lanes) {
    estimate.step_us = std::max(estimate.step_us, lane.free_us);
    estimate.groups_used += lane.used;
  }
  const int waits = knowledge.WaitsAtEnd();
  estimate.waits += waits;
  estimate.step_us += waits * options_.wait_us;
  return estimate;
}

}  // namespace tensorflow::multistream
