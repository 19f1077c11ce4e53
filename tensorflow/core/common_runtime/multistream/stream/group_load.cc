// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/group_load.h"

#include <algorithm>

namespace tensorflow {
namespace multistream {

int GroupLoad::StartOnLeastLoaded(int groups) {
  absl::MutexLock lock(&mu_);
  const int first = next_ % groups;
  int best = first;
  for (int i = 1; i < groups; ++i) {
    const int candidate = (first + i) % groups;
    if (steps_[candidate].running < steps_[best].running) best = candidate;
  }
  next_ = (best + 1) % groups;
  CountStart(best);
  return best;
}

void GroupLoad::StartOn(int group) {
  absl::MutexLock lock(&mu_);
  CountStart(group);
}

void GroupLoad::CountStart(int group) {
  ++steps_[group].started;
  ++steps_[group].running;
  ++running_;
  if (counted_ == kRecentSteps) {
    most_before_ = most_;
    most_ = 0;
    counted_ = 0;
  }
  ++counted_;
  most_ = std::max(most_, running_);
  recent_most_.store(std::max(most_, most_before_), std::memory_order_relaxed);
}

void GroupLoad::End(int group, bool ok) {
  absl::MutexLock lock(&mu_);
  --steps_[group].running;
  --running_;
  if (!ok) ++steps_[group].failed;
}

GroupLoad::Steps GroupLoad::steps(int group) const {
  absl::MutexLock lock(&mu_);
  return steps_[group];
}

}  // namespace multistream
}  // namespace tensorflow
