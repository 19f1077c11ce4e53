// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On which group does the caller want its calls to run (tf.cuda.stream_group)?
// The Python API sets the group of the thread, and executors ask at the
// beginning of a step, which the calling thread begins. CPU ops of that step
// make nested calls on other threads; the step's runner, which the ops pass on,
// carries the group there.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_

#include <memory>

#include "tensorflow/core/common_runtime/executor.h"

namespace tensorflow::multistream {

constexpr int kAnyGroup = -1;

// Calls that this thread makes from now on run on `group`; kAnyGroup: on the
// least loaded group. Returns the value before.
int PinThread(int group);

// The pinned group of the step that this thread begins, or kAnyGroup.
int PinnedGroup(const Executor::Args& args);

// An executor for a device without groups, such as the CPU: nested calls of its
// ops run on the group that the step's calling thread has pinned.
std::unique_ptr<Executor> KeepPinnedGroup(std::unique_ptr<Executor> executor);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
