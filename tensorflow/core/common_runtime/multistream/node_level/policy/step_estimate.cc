// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/step_estimate.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

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

GroupKnowledge::GroupKnowledge(const NodeLists& inputs,
                               const PolicyOptions& options)
    : inputs_(inputs),
      group_count_(options.group_count),
      caller_group_(options.caller_group),
      start_(static_cast<int>(inputs.size())),
      known_after_(inputs.size() + 1),
      known_to_(group_count_),
      group_of_(inputs.size() + 1),
      position_(inputs.size() + 1),
      last_of_(group_count_, -1) {
  group_of_[start_] = caller_group_;
  position_[start_] = 1;
  known_after_[start_].Raise(caller_group_, 1);
  known_to_[caller_group_].Raise(caller_group_, 1);
}

void GroupKnowledge::AddMissing(int node, int group) {
  const int other = group_of_[node];
  if (other == group || known_to_[group].Covers(other, position_[node])) {
    return;
  }
  for (int& last : missing_) {
    if (group_of_[last] != other) continue;
    if (position_[last] < position_[node]) last = node;
    return;
  }
  missing_.push_back(node);
}

int GroupKnowledge::CountWaits() {
  return static_cast<int>(
      std::count_if(missing_.begin(), missing_.end(), [this](int node) {
        return std::none_of(
            missing_.begin(), missing_.end(), [this, node](int other) {
              return other != node && known_after_[other].Covers(
                                          group_of_[node], position_[node]);
            });
      }));
}

int GroupKnowledge::WaitsOf(int node, int group) {
  missing_.clear();
  AddMissing(start_, group);
  for (int input : inputs_[node]) AddMissing(input, group);
  return CountWaits();
}

int GroupKnowledge::Run(int node, int group) {
  const int waits = WaitsOf(node, group);
  VectorClock& known = known_to_[group];
  for (int other : missing_) known.Join(known_after_[other]);
  group_of_[node] = group;
  position_[node] = static_cast<int>(known[group]) + 1;
  known.Raise(group, position_[node]);
  last_of_[group] = node;
  known_after_[node] = known;
  return waits;
}

int GroupKnowledge::WaitsAtEnd() {
  missing_.clear();
  for (int last : last_of_) {
    if (last >= 0) AddMissing(last, caller_group_);
  }
  return CountWaits();
}

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
