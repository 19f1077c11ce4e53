// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a step run on groups in a session whose devices have names of its
// own? TensorFlow wraps a server's devices for a session that asks for a
// cluster of its own, keeps its state to itself, or serves eager code of
// another process (RenamedDevice). executor_choice.cc asks for the leader of
// the device that an executor is made for.
//
//     RenamedDevice  /job:worker/.../GPU:0  ->  the leader's device
//     ours, hidden   the same name          ->  the device of a hidden group
//         resource_manager() of the RenamedDevice, where the session's
//         variables are

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"

namespace tensorflow {
namespace multistream {

// The leader that `device` is, or that it renames; nullptr if it has no groups.
// The result lives as long as the process has the leader. Threads may share it.
GroupLeader* LeaderOf(Device* device);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_RENAMED_LEADER_H_
