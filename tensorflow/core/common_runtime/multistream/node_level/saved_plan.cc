// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/node_level/saved_plan.h"

#include <atomic>
#include <map>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow {
namespace multistream {
namespace {

struct Captured {
  std::atomic<bool> on{false};
  absl::Mutex mu;
  std::map<std::string, std::set<int>> groups ABSL_GUARDED_BY(mu);  // by node
};

Captured* Get() {
  static auto* captured = new Captured;
  return captured;
}

}  // namespace

void SavedPlan::Start() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  captured->groups.clear();
  captured->on.store(true, std::memory_order_release);
}

void SavedPlan::Stop() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  captured->on.store(false, std::memory_order_release);
  captured->groups.clear();
}

bool SavedPlan::IsOn() { return Get()->on.load(std::memory_order_acquire); }

void SavedPlan::Add(const std::string& node, int group) {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  // The step began before Stop.
  if (!captured->on.load(std::memory_order_acquire)) return;
  captured->groups[node].insert(group);
}

absl::StatusOr<std::string> SavedPlan::Lines() {
  Captured* captured = Get();
  absl::MutexLock lock(&captured->mu);
  std::map<int, std::set<std::string>> by_group;
  for (const auto& [node, groups] : captured->groups) {
    if (groups.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "node ", node, " has had the groups ", absl::StrJoin(groups, ", ")));
    }
    by_group[*groups.begin()].insert(node);
  }
  std::string lines;
  for (const auto& [group, nodes] : by_group) {
    for (const std::string& node : nodes) {
      absl::StrAppend(&lines, group, " ", node, "\n");
    }
  }
  return lines;
}

}  // namespace multistream
}  // namespace tensorflow
