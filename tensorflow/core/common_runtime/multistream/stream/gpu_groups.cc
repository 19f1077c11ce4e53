// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

struct Registry {
  absl::Mutex mu;
  std::map<int, std::unique_ptr<GpuGroups>> groups ABSL_GUARDED_BY(mu);
};

Registry* GetRegistry() {
  static Registry* registry = new Registry;
  return registry;
}

std::atomic<int64_t> sanitizer_reports{0};

std::unique_ptr<Sanitizer> NewSanitizer(int groups, SanitizerMode mode) {
  if (mode == SanitizerMode::kOff) return nullptr;
  const bool abort = mode == SanitizerMode::kAbort;
  return std::make_unique<Sanitizer>(groups, [abort](const Report& report) {
    sanitizer_reports.fetch_add(1);
    if (abort) LOG(FATAL) << ReportAsText(report);
    LOG(ERROR) << ReportAsText(report);
  });
}

std::vector<StreamGroup*> Pointers(
    const std::vector<std::unique_ptr<StreamGroup>>& groups) {
  std::vector<StreamGroup*> pointers;
  for (const auto& group : groups) pointers.push_back(group.get());
  return pointers;
}

}  // namespace

int64_t SanitizerReports() { return sanitizer_reports.load(); }

GpuGroups::GpuGroups(std::vector<std::unique_ptr<StreamGroup>> groups,
                     SanitizerMode sanitizer)
    : groups_(std::move(groups)),
      sanitizer_(NewSanitizer(size(), sanitizer)),
      steps_(size()),
      next_pinned_(size()),
      variables_(Pointers(groups_)),
      out_of_memory_(leader()->gpu(), size()) {
  for (const auto& group : groups_) {
    group->BelongsTo(sanitizer_.get(), &out_of_memory_);
  }
}

StreamGroup* GpuGroups::StartStep(absl::Span<const int> among, bool is_pinned) {
  absl::MutexLock lock(&load_mu_);
  size_t& next = is_pinned ? next_pinned_[among.front()] : next_;
  const size_t first = next % among.size();
  size_t best = first;
  for (size_t i = 1; i < among.size(); ++i) {
    const size_t candidate = (first + i) % among.size();
    if (steps_[among[candidate]].running < steps_[among[best]].running) {
      best = candidate;
    }
  }
  if (among.size() > 1) next = best + 1;
  CountStart(among[best]);
  return group(among[best]);
}

void GpuGroups::StartStepOn(StreamGroup* group) {
  absl::MutexLock lock(&load_mu_);
  CountStart(group->index());
}

void GpuGroups::CountStart(int group) {
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

void GpuGroups::EndStep(StreamGroup* group, bool ok) {
  absl::MutexLock lock(&load_mu_);
  Steps& steps = steps_[group->index()];
  --steps.running;
  --running_;
  if (!ok) ++steps.failed;
}

bool GpuGroups::HaveReclaimableMemory() const {
  return std::any_of(groups_.begin(), groups_.end(), [](const auto& group) {
    return group->reclaimable()->IsHeld();
  });
}

void GpuGroups::ReclaimMemory() {
  for (const auto& group : groups_) {
    group->reclaimable()->Reclaim(group.get());
  }
}

std::vector<StreamGroupStats> GpuGroups::Stats() const {
  std::vector<StreamGroupStats> all;
  for (const auto& group : groups_) {
    StreamGroupStats& stats = all.emplace_back(group->Stats());
    absl::MutexLock lock(&load_mu_);
    const Steps& steps = steps_[group->index()];
    stats.steps_started = steps.started;
    stats.steps_running = steps.running;
    stats.steps_failed = steps.failed;
  }
  return all;
}

GpuGroups* FindGpuGroups(int gpu) {
  if (GroupsAreOfParent()) return nullptr;
  Registry* registry = GetRegistry();
  absl::MutexLock lock(&registry->mu);
  auto found = registry->groups.find(gpu);
  return found == registry->groups.end() ? nullptr : found->second.get();
}

GpuGroups* RegisterGpuGroups(int gpu, std::unique_ptr<GpuGroups> groups) {
  NoteGroupsMade();
  Registry* registry = GetRegistry();
  absl::MutexLock lock(&registry->mu);
  return registry->groups.try_emplace(gpu, std::move(groups))
      .first->second.get();
}

std::vector<GpuGroups*> AllGpuGroups() {
  if (GroupsAreOfParent()) return {};
  Registry* registry = GetRegistry();
  absl::MutexLock lock(&registry->mu);
  std::vector<GpuGroups*> all;
  for (const auto& [gpu, groups] : registry->groups) {
    all.push_back(groups.get());
  }
  return all;
}

}  // namespace tensorflow::multistream
