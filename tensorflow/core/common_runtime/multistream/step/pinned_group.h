// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On which groups does the caller want its calls to run (tf.cuda.stream_group)?
// The Python API sets the groups of the thread, and executors ask at the
// beginning of a step, which the calling thread begins. CPU ops of that step
// make nested calls on other threads; the step's runner, which the ops pass on,
// carries the groups there.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"

namespace tensorflow::multistream {

constexpr int kAnyGroup = -1;

// The groups `first` to `last`, or any group.
struct PinnedGroups {
  int first = kAnyGroup;
  int last = kAnyGroup;

  bool is_any() const { return first == kAnyGroup; }
  // As one number, for Python: of the first, and 2^32 times that of the last.
  int64_t packed() const {
    return (static_cast<int64_t>(last) << 32) | static_cast<uint32_t>(first);
  }
  static PinnedGroups Unpacked(int64_t packed) {
    return {static_cast<int>(packed), static_cast<int>(packed >> 32)};
  }
};

// While it lives, or from Exchange on, each call that this thread makes runs on
// the least loaded of the groups.
class PinnedThread : public OnThread<PinnedThread, PinnedGroups> {
 public:
  using OnThread::OnThread;
};

// What is pinned for the step that this thread begins.
PinnedGroups PinnedGroupsOf(const Executor::Args& args);

// The groups of a GPU that a session has, for steps that run on one of them.
class StepGroups {
 public:
  // `name`: the GPU's, for errors.
  StepGroups(GpuGroups* gpu, std::string name, const Options& options,
             int groups);

  // Starts the step that this thread begins, on one of the pinned groups or of
  // Options::GroupsForAll. InvalidArgument if there is no such group.
  absl::StatusOr<StreamGroup*> StartStep(const Executor::Args& args) const;

 private:
  GpuGroups* const gpu_;
  const std::string name_;
  const std::vector<int> all_;
  const std::vector<int> for_all_;
};

// An executor for a device without groups, such as the CPU: nested calls of its
// ops run on the groups that the step's calling thread has pinned.
std::unique_ptr<Executor> KeepPinnedGroups(std::unique_ptr<Executor> executor);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
