// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What stream groups does a GPU have? A registry of all groups, and the parts
// that the groups of one GPU share: load, order of variables, and the text of
// out-of-memory errors. The device factories register groups; devices,
// executors and stream_stats() look them up.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GPU_GROUPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GPU_GROUPS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"
#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"

namespace tensorflow::multistream {

// The stream groups of one visible GPU.
class GpuGroups {
 public:
  // `groups` is ordered by index and not empty.
  explicit GpuGroups(std::vector<std::unique_ptr<StreamGroup>> groups,
                     SanitizerMode sanitizer = SanitizerMode::kOff);

  int size() const { return static_cast<int>(groups_.size()); }
  StreamGroup* group(int i) const { return groups_[i].get(); }
  StreamGroup* leader() const { return groups_[0].get(); }

  // Counts a step as running on the least loaded of the groups `among`, by
  // number, round robin among equals, and returns that group. Steps that are
  // pinned to some groups do not change whose turn it is for the others.
  StreamGroup* StartStep(absl::Span<const int> among, bool is_pinned = false);
  // Counts a step as running on `group`.
  void StartStepOn(StreamGroup* group);
  void EndStep(StreamGroup* group, bool ok);
  // The most steps that ran at the same time, over all groups, while the last
  // kRecentSteps to 2 * kRecentSteps - 1 steps started. Unlike the number of
  // running steps, this maximum does not change with each step.
  int64_t recent_most_steps() const {
    return recent_most_.load(std::memory_order_relaxed);
  }
  static constexpr int kRecentSteps = 64;

  // See VariableOrder.
  using StateKey = VariableOrder::Key;
  using StateKeys = VariableOrder::Keys;
  void NoteLeaderWork() { variables_.NoteLeaderWork(); }
  void OrderAfterLeader(StreamGroup* group) {
    variables_.OrderAfterLeader(group);
  }
  void BeginRead(StreamGroup* group, StateKeys state) {
    variables_.BeginRead(group, state);
  }
  void EndRead(StreamGroup* group, StateKeys state) {
    variables_.EndRead(group, state);
  }
  void BeginWrite(StateKeys state) { variables_.BeginWrite(state); }
  void EndWrite(StateKeys state) { variables_.EndWrite(state); }
  void BeginMove(StateKeys state) { variables_.BeginMove(state); }
  void EndMove(StateKeys state) { variables_.EndMove(state); }
  std::optional<int64_t> StateVersion(StateKeys state) const {
    return variables_.Version(state);
  }

  int64_t threads_that_wait_for_state() {
    return variables_.threads_that_wait();
  }

  // Call when steps may be recorded. Recorded steps may change variables, and
  // must exclude all readers: from now on the leader's reads lock, too.
  void NoteRecorder() { has_recorders_.store(true, std::memory_order_release); }
  bool has_recorders() const {
    return has_recorders_.load(std::memory_order_acquire);
  }

  // Call before the groups are used, if ops of one group may overlap, as on an
  // emulated GPU: locks must then order what a stream orders.
  void NoteThatOpsOverlap() { ops_overlap_ = true; }
  bool ops_overlap() const { return ops_overlap_; }

  // See OutOfMemory.
  int64_t memory_failures() const { return out_of_memory_.count(); }
  absl::Status WithMemoryOfGroups(absl::Status status,
                                  int64_t failures_before) const {
    return out_of_memory_.AddTo(std::move(status), failures_before);
  }

  // See ReclaimableMemory; here for all groups.
  bool HaveReclaimableMemory() const;
  void ReclaimMemory();

  std::vector<StreamGroupStats> Stats() const;

 private:
  // The steps of one group since the start of the process.
  struct Steps {
    int64_t started = 0;
    int64_t running = 0;
    int64_t failed = 0;
  };

  void CountStart(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(load_mu_);

  const std::vector<std::unique_ptr<StreamGroup>> groups_;
  const std::unique_ptr<Sanitizer> sanitizer_;  // or nullptr

  mutable absl::Mutex load_mu_;
  std::vector<Steps> steps_ ABSL_GUARDED_BY(load_mu_);  // of each group
  // Whose turn it is among all groups.
  size_t next_ ABSL_GUARDED_BY(load_mu_) = 0;
  // Of pinned steps, by the first of the groups that they may have.
  std::vector<size_t> next_pinned_ ABSL_GUARDED_BY(load_mu_);
  int64_t running_ ABSL_GUARDED_BY(load_mu_) = 0;
  // The maximum over the last `counted_` starts, and over the kRecentSteps
  // starts before those.
  int64_t most_ ABSL_GUARDED_BY(load_mu_) = 0;
  int64_t most_before_ ABSL_GUARDED_BY(load_mu_) = 0;
  int counted_ ABSL_GUARDED_BY(load_mu_) = 0;
  std::atomic<int64_t> recent_most_{0};

  VariableOrder variables_;
  std::atomic<bool> has_recorders_{false};
  bool ops_overlap_ = false;
  OutOfMemory out_of_memory_;
};

// Makes `count` groups of the class Group.
template <class Group>
std::unique_ptr<GpuGroups> NewGpuGroups(int gpu, int count,
                                        SanitizerMode sanitizer) {
  std::vector<std::unique_ptr<StreamGroup>> groups;
  for (int i = 0; i < count; ++i) {
    groups.push_back(std::make_unique<Group>(gpu, i));
  }
  return std::make_unique<GpuGroups>(std::move(groups), sanitizer);
}

// The groups of /physical_device:GPU:`gpu`; nullptr if there are none yet, or
// if they belong to the parent process (forked_process.h).
GpuGroups* FindGpuGroups(int gpu);
// Registers the groups of /physical_device:GPU:`gpu`. If the GPU has groups
// already, drops `groups` and returns the existing ones.
GpuGroups* RegisterGpuGroups(int gpu, std::unique_ptr<GpuGroups> groups);
// The groups of all GPUs, ordered by GPU; empty if they belong to the parent
// process.
std::vector<GpuGroups*> AllGpuGroups();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GPU_GROUPS_H_
