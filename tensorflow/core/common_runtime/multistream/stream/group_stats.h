// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a program learn about a stream group? StreamStats() in
// multistream.h returns it, and tf.cuda.stream_stats() in Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_

#include <cstdint>

namespace tensorflow {
namespace multistream {

// One stream group at one moment. Counters run from the start of the process
// and add up all sessions and functions.
struct StreamGroupStats {
  int gpu = 0;    // k of /physical_device:GPU:k
  int group = 0;  // 0 is the leader, the visible device itself
  int64_t steps_started = 0;
  int64_t steps_running = 0;
  int64_t steps_failed = 0;
  int64_t bytes_in_use = 0;       // of the group's allocator
  int64_t peak_bytes_in_use = 0;  // of the group's allocator
  // Of the group's allocator; of the pool, where the groups of a GPU share one.
  int64_t bytes_limit = 0;
  // What that allocator, or pool, has taken from the GPU.
  int64_t bytes_reserved = 0;
  // Pinned host memory of the group's own; 0 without
  // TF_PER_STREAM_HOST_ALLOCATOR.
  int64_t host_bytes_in_use = 0;
  int64_t peak_host_bytes_in_use = 0;
  // The StreamExecutor that has the group's cuBLAS, cuDNN and cuFFT handles, as
  // the number of the first group that has it, too.
  int64_t executor = 0;
  // Number of the CUDA context that has the group's streams; 0 is the GPU's
  // primary one.
  int64_t context = 0;
  // CUDA's priority of the group's streams: the lower, the sooner.
  int64_t priority = 0;
  // What was enqueued on the group's stream to keep order: waits for other
  // groups, and events for others to wait for.
  int64_t waits = 0;
  int64_t events = 0;
  // Tensors that are held until the group's stream has completed their last
  // use: memory of other groups, and of the host for copies to the GPU.
  int64_t tensors_held = 0;
  int64_t bytes_held = 0;
  int64_t peak_bytes_held = 0;
  // Closures of the group's steps that wait at this moment for a thread to
  // launch their ops: with more of them for long, there are more clients than
  // the cores and groups can serve.
  int64_t steps_waiting = 0;
  // The longest time that one of them has waited, or has waited so far, or that
  // an op's launch has waited for a lock of the CUDA driver. What an alarm
  // should look at: milliseconds under full load, never a second.
  int64_t longest_launch_wait_micros = 0;
  // Steps that were launched as one recording (TF_MULTI_STREAM_CAPTURE); of
  // these, with ops side by side (TF_MULTI_STREAM_CAPTURE_BRANCHES), whose end
  // was seen by the thread that launched them, without a host callback, and
  // compared with the step as it always runs (TF_MULTI_STREAM_CAPTURE_VERIFY).
  int64_t steps_replayed = 0;
  int64_t replays_with_branches = 0;
  int64_t replays_polled = 0;
  int64_t replays_verified = 0;
  // Recordings made, those that there are, and their memory.
  int64_t recordings_made = 0;
  int64_t recordings = 0;
  int64_t recording_bytes = 0;
  // The longest time that making one took.
  int64_t longest_recording_micros = 0;
  // The most memory beside recording_bytes that a launch of a recording takes,
  // from the pool that CUDA has for graphs, as workspaces of cuBLAS. Steps of
  // several groups that run at once take it each; the pool keeps it.
  int64_t recording_workspace_bytes = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_
