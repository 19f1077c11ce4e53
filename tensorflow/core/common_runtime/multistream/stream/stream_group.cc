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

#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/config/options.h"
#include "tensorflow/core/common_runtime/multistream/stream/fork_state.h"
#include "tensorflow/core/common_runtime/multistream/util/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/util/test_faults.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/numbers.h"

namespace tensorflow {
namespace multistream {
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

std::unique_ptr<Sanitizer> NewSanitizer(int groups) {
  const absl::StatusOr<Options>& options = ProcessOptions();
  if (!options.ok() || options->sanitizer == SanitizerMode::kOff) {
    return nullptr;
  }
  const bool abort = options->sanitizer == SanitizerMode::kAbort;
  return std::make_unique<Sanitizer>(groups, [abort](const Report& report) {
    sanitizer_reports.fetch_add(1);
    if (abort) LOG(FATAL) << ReportAsText(report);
    LOG(ERROR) << ReportAsText(report);
  });
}

void Count(std::atomic<int64_t>* counter) {
  counter->fetch_add(1, std::memory_order_relaxed);
}

EventId IdOf(const void* event) { return reinterpret_cast<EventId>(event); }

}  // namespace

int64_t SanitizerReports() { return sanitizer_reports.load(); }

void StreamGroup::NoteHeld(int64_t tensors, int64_t bytes) {
  tensors_held_.fetch_add(tensors, std::memory_order_relaxed);
  const int64_t now =
      bytes_held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  RaiseTo(now, &peak_bytes_held_);
}

void StreamGroup::NoteLaunchWait(int64_t nanos) {
  RaiseTo(nanos, &longest_launch_wait_);
}

void StreamGroup::OrderAfter(StreamGroup* other) {
  if (TakeTestFault(TestFault::kDropWait)) return;
  WaitFor(other);
  Count(&other->events_);
  Count(&waits_);
  if (sanitizer_ != nullptr) sanitizer_->WaitForTail(index_, other->index_);
}

// The address of a group is the name of its mark.
void StreamGroup::Mark() {
  RecordMark();
  Count(&events_);
  if (sanitizer_ != nullptr) sanitizer_->Record(IdOf(this), index_);
}

void StreamGroup::OrderAfterMark(StreamGroup* other) {
  if (TakeTestFault(TestFault::kDropWait)) return;
  WaitForMark(other);
  Count(&waits_);
  if (sanitizer_ != nullptr) sanitizer_->Wait(index_, IdOf(other));
}

void StreamGroup::RecordEvent(StreamEvent* event) {
  Record(event);
  Count(&events_);
  if (sanitizer_ != nullptr) sanitizer_->Record(IdOf(event), index_);
}

void StreamGroup::OrderAfterEvent(StreamGroup* other, StreamEvent* event) {
  if (TakeTestFault(TestFault::kDropWait)) return;
  WaitForEvent(other, event);
  Count(&waits_);
  if (sanitizer_ != nullptr) sanitizer_->Wait(index_, IdOf(event));
}

void StreamGroup::WhenPassed(std::function<void()> f, bool host_waits) {
  if (sanitizer_ == nullptr) {
    ThenExecute(std::move(f));
    return;
  }
  const Position tail = sanitizer_->Tail(index_);
  ThenExecute([sanitizer = sanitizer_, tail, host_waits, f = std::move(f)] {
    sanitizer->Passed(tail);
    if (host_waits) sanitizer->HostSynchronized(tail);
    f();
  });
}

std::function<double()> StreamGroup::StartTimer() {
  return [this, started = std::chrono::steady_clock::now()] {
    Synchronize().IgnoreError();
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now() - started)
        .count();
  };
}

absl::Status StreamGroup::Block() {
  if (sanitizer_ == nullptr) return Synchronize();
  const Position tail = sanitizer_->Tail(index_);
  absl::Status status = Synchronize();
  if (status.ok()) {
    sanitizer_->Passed(tail);
    sanitizer_->HostSynchronized(tail);
  }
  return status;
}

GpuGroups::GpuGroups(std::vector<std::unique_ptr<StreamGroup>> groups)
    : groups_(std::move(groups)), sanitizer_(NewSanitizer(size())) {
  for (const auto& group : groups_) {
    group->sanitizer_ = sanitizer_.get();
    group->memory_failures_ = &memory_failures_;
  }
}

void StreamGroup::NoteNoMemory(size_t bytes,
                               const std::optional<AllocatorStats>& stats,
                               const std::optional<AllocatorStats>& all) {
  if (memory_failures_ == nullptr) return;  // no GPU's, so no step's
  std::string text =
      absl::StrCat("Stream group ", index_, " of GPU ", gpu_, " had no ",
                   strings::HumanReadableNumBytes(bytes));
  if (stats) {
    absl::StrAppend(&text, ": ",
                    strings::HumanReadableNumBytes(stats->bytes_in_use),
                    " in use");
    if (all && all->bytes_limit) {
      absl::StrAppend(
          &text, ", and ", strings::HumanReadableNumBytes(all->bytes_in_use),
          " of at most ", strings::HumanReadableNumBytes(*all->bytes_limit),
          " by all groups together");
    } else if (stats->bytes_limit) {
      absl::StrAppend(&text, ", of at most ",
                      strings::HumanReadableNumBytes(*stats->bytes_limit));
    }
  }
  absl::MutexLock lock(&memory_mu_);
  no_memory_ = std::move(text);
  last_memory_failure_ =
      memory_failures_->fetch_add(1, std::memory_order_acq_rel) + 1;
}

absl::Status GpuGroups::WithMemoryOfGroups(absl::Status status,
                                           int64_t failures_before) {
  if (!absl::IsResourceExhausted(status)) return status;
  for (const auto& group : groups_) {
    absl::MutexLock lock(&group->memory_mu_);
    if (group->last_memory_failure_ <= failures_before) continue;
    errors::AppendToMessage(&status, group->no_memory_);
  }
  return status;
}

StreamGroup* GpuGroups::StartStep(int groups) {
  absl::MutexLock lock(&load_mu_);
  const int first = next_ % groups;
  int best = first;
  for (int i = 1; i < groups; ++i) {
    const int candidate = (first + i) % groups;
    if (groups_[candidate]->steps_running_ < groups_[best]->steps_running_) {
      best = candidate;
    }
  }
  next_ = (best + 1) % groups;
  CountStart(groups_[best].get());
  return groups_[best].get();
}

void GpuGroups::StartStepOn(StreamGroup* group) {
  absl::MutexLock lock(&load_mu_);
  CountStart(group);
}

void GpuGroups::CountStart(StreamGroup* group) {
  ++group->steps_started_;
  ++group->steps_running_;
}

void GpuGroups::EndStep(StreamGroup* group, bool ok) {
  absl::MutexLock lock(&load_mu_);
  --group->steps_running_;
  if (!ok) ++group->steps_failed_;
}

void GpuGroups::OrderAfterLeader(StreamGroup* group) {
  if (group->is_leader()) return;
  if (!leader_work_.load(std::memory_order_acquire) &&
      group->marks_seen_.load(std::memory_order_acquire) ==
          marks_made_.load(std::memory_order_acquire)) {
    return;
  }
  absl::MutexLock lock(&mark_mu_);
  if (leader_work_.load(std::memory_order_acquire)) {
    // In this order: who sees no work without the lock then sees a mark that it
    // has not waited for, and comes here.
    marks_made_.fetch_add(1, std::memory_order_acq_rel);
    leader_work_.exchange(false, std::memory_order_acq_rel);
    leader()->Mark();
  }
  const int64_t made = marks_made_.load(std::memory_order_acquire);
  if (group->marks_seen_.load(std::memory_order_acquire) < made) {
    group->OrderAfterMark(leader());
    group->marks_seen_.store(made, std::memory_order_release);
  }
}

void GpuGroups::BeginRead(StreamGroup* group, StateKeys state) {
  state_locks_.Enter(TwoSidedLocks::kReaders, state);
  OrderAfterLeader(group);
}

void GpuGroups::EndRead(StreamGroup* group, StateKeys state) {
  group->has_read_.store(true, std::memory_order_release);
  state_locks_.Leave(TwoSidedLocks::kReaders, state);
}

void GpuGroups::BeginWrite(StateKeys state) {
  state_locks_.Enter(TwoSidedLocks::kWriters, state);
  // Whoever sees that nobody has read launches after the waits. Reads of other
  // variables, which may be in the middle, need none.
  absl::MutexLock lock(&waits_mu_);
  for (const auto& group : groups_) {
    if (group->has_read_.exchange(false, std::memory_order_acq_rel)) {
      leader()->OrderAfter(group.get());
    }
  }
}

void GpuGroups::EndWrite(StateKeys state) {
  NoteLeaderWork();
  state_locks_.Leave(TwoSidedLocks::kWriters, state);
}

std::vector<StreamGroupStats> GpuGroups::Stats() {
  std::vector<StreamGroupStats> all;
  for (const auto& group : groups_) {
    StreamGroupStats stats;
    stats.gpu = group->gpu();
    stats.group = group->index();
    {
      absl::MutexLock lock(&load_mu_);
      stats.steps_started = group->steps_started_;
      stats.steps_running = group->steps_running_;
      stats.steps_failed = group->steps_failed_;
    }
    if (Allocator* allocator = group->allocator()) {
      if (std::optional<AllocatorStats> memory = allocator->GetStats()) {
        stats.bytes_in_use = memory->bytes_in_use;
        stats.peak_bytes_in_use = memory->peak_bytes_in_use;
        stats.bytes_limit = memory->bytes_limit.value_or(0);
        stats.bytes_reserved = memory->pool_bytes.value_or(0);
      }
    }
    if (Allocator* allocator = group->host_allocator()) {
      if (std::optional<AllocatorStats> memory = allocator->GetStats()) {
        stats.host_bytes_in_use = memory->bytes_in_use;
        stats.peak_host_bytes_in_use = memory->peak_bytes_in_use;
      }
    }
    stats.executor = group->executor();
    stats.context = group->context();
    stats.priority = group->priority();
    stats.steps_waiting = group->steps_waiting_.load(std::memory_order_relaxed);
    stats.longest_launch_wait_micros =
        group->longest_launch_wait_.load(std::memory_order_relaxed) / 1000;
    stats.waits = group->waits_.load(std::memory_order_relaxed);
    stats.events = group->events_.load(std::memory_order_relaxed);
    stats.tensors_held = group->tensors_held_.load(std::memory_order_relaxed);
    stats.bytes_held = group->bytes_held_.load(std::memory_order_relaxed);
    stats.peak_bytes_held =
        group->peak_bytes_held_.load(std::memory_order_relaxed);
    all.push_back(stats);
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

}  // namespace multistream
}  // namespace tensorflow
