// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which groups had no memory for a step that ended with RESOURCE_EXHAUSTED?
// TensorFlow's error names the requested size, not the group. Groups'
// allocators note each failure here; executors add the text to the step's
// status.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_OUT_OF_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_OUT_OF_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {

// The failed allocations of the groups of one GPU.
class OutOfMemory {
 public:
  OutOfMemory(int gpu, int groups) : gpu_(gpu), last_(groups) {}

  // The allocator of `group` could not allocate `bytes`. `stats`: that
  // allocator's; `all`: those of the shared pool, if the groups share one.
  void Note(int group, size_t bytes, const std::optional<AllocatorStats>& stats,
            const std::optional<AllocatorStats>& all);

  // The number of failed allocations, of all groups.
  int64_t count() const { return count_.load(std::memory_order_acquire); }

  // `status` is a step's; count() was `count_before` when the step began. If
  // the step ran out of memory, adds the groups whose allocations failed since,
  // with their use and limit.
  absl::Status AddTo(absl::Status status, int64_t count_before) const;

 private:
  struct Failure {
    int64_t number = 0;  // of all groups' failures
    std::string text;
  };

  const int gpu_;
  std::atomic<int64_t> count_{0};
  mutable absl::Mutex mu_;
  std::vector<Failure> last_ ABSL_GUARDED_BY(mu_);  // of each group
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_OUT_OF_MEMORY_H_
