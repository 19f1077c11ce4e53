// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group of a GPU has the least to do, and how many steps has each run?
// GpuGroups calls it to place a step that may run on any group.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_LOAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_LOAD_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow {
namespace multistream {

class GroupLoad {
 public:
  // The steps of one group since the start of the process.
  struct Steps {
    int64_t started = 0;
    int64_t running = 0;
    int64_t failed = 0;
  };

  explicit GroupLoad(int groups) : steps_(groups) {}

  // Counts a step as running on the least loaded of the first `groups` groups,
  // round robin among equals, and returns that group.
  int StartOnLeastLoaded(int groups);
  // Counts a step as running on `group`.
  void StartOn(int group);
  void End(int group, bool ok);

  Steps steps(int group) const;
  // The most steps that ran at the same time, over all groups, while the last
  // kRecentSteps to 2 * kRecentSteps - 1 steps started. Unlike the number of
  // running steps, this maximum does not change with each step.
  int64_t recent_most() const {
    return recent_most_.load(std::memory_order_relaxed);
  }
  static constexpr int kRecentSteps = 64;

 private:
  void CountStart(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  std::vector<Steps> steps_ ABSL_GUARDED_BY(mu_);
  int next_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t running_ ABSL_GUARDED_BY(mu_) = 0;
  // The maximum over the last `counted_` starts, and over the kRecentSteps
  // starts before those.
  int64_t most_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t most_before_ ABSL_GUARDED_BY(mu_) = 0;
  int counted_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int64_t> recent_most_{0};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_LOAD_H_
