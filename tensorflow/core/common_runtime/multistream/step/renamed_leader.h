// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a step run on groups in a session that renames its devices?
// TensorFlow wraps a server's devices in RenamedDevice for a session that asks
// for its own cluster, isolates its state, or serves another process's eager
// code. executor_choice.cc asks for the leader behind an executor's device.
//
//     RenamedDevice         /job:worker/.../GPU:0  ->  the leader's device
//     our hidden wrapper    the same name          ->  a hidden group's device
//         with the resource_manager() of the RenamedDevice, which has the
//         session's variables

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"

namespace tensorflow::multistream {

// `device` as a leader, or the leader that `device` wraps; nullptr if `device`
// has no groups. The result lives as long as the leader, and is thread-safe.
GroupLeader* LeaderOf(Device* device);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_
