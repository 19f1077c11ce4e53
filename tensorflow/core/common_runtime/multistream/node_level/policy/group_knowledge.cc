// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/policy/group_knowledge.h"

#include <algorithm>

namespace tensorflow::multistream {

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

}  // namespace tensorflow::multistream
