// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which group must a call run on, if its caller says so? The programs'
// interface sets it, and executors ask at the beginning of a step.
//
// The thread that makes a call begins its steps, so the wish is the thread's.
// What ops of the call's step on the CPU call in their turn begins on other
// threads: they hand on the step's runner, which carries the wish.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_

#include <memory>

#include "tensorflow/core/common_runtime/executor.h"

namespace tensorflow {
namespace multistream {

constexpr int kAnyGroup = -1;

// Calls that this thread makes from now on run on `group`, or on kAnyGroup.
// Returns what was said before.
int PinThread(int group);

// The group of a step that this thread begins, or kAnyGroup.
int PinnedGroup(const Executor::Args& args);

// An executor for a device without groups: what its ops call in their turn runs
// on the group of the thread that began the step.
std::unique_ptr<Executor> KeepPinnedGroup(std::unique_ptr<Executor> executor);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PINNED_GROUP_H_
