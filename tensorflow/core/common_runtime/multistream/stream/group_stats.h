// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a program learn about a stream group? StreamStats() in
// multistream.h returns it, and tf.cuda.stream_stats() in Python.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_

#include <cstdint>

namespace tensorflow::multistream {

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
  // Limit of the group's allocator, or of the pool if the groups share one.
  int64_t bytes_limit = 0;
  // What the allocator or the pool has taken from the GPU.
  int64_t bytes_reserved = 0;
  // The group's own pinned host memory; 0 without TF_PER_STREAM_HOST_ALLOCATOR.
  int64_t host_bytes_in_use = 0;
  int64_t peak_host_bytes_in_use = 0;
  // The StreamExecutor with the group's cuBLAS, cuDNN and cuFFT handles, given
  // as the index of the lowest group that uses the same executor.
  int64_t executor = 0;
  // Number of the CUDA context that has the group's streams; 0 is the GPU's
  // primary one.
  int64_t context = 0;
  // CUDA's priority of the group's streams: the lower, the sooner.
  int64_t priority = 0;
  // Enqueued on the group's stream to keep order: waits for other groups, and
  // events for other groups to wait for.
  int64_t waits = 0;
  int64_t events = 0;
  // Tensors that are held until the group's stream has completed their last
  // use: memory of other groups, and of the host for copies to the GPU.
  int64_t tensors_held = 0;
  int64_t bytes_held = 0;
  int64_t peak_bytes_held = 0;
  // Closures of the group's steps that now wait for a thread to launch their
  // ops. If the number stays high, there are more clients than the cores and
  // groups can serve.
  int64_t steps_waiting = 0;
  // The longest time, in this minute and the last one, that a closure has
  // waited for a thread (closures that still wait count), or that an op's
  // launch has waited for a lock of the CUDA driver. Watch this value with an
  // alarm: milliseconds are normal under full load, a second never is.
  int64_t longest_launch_wait_micros = 0;
  // Steps launched as one recording (TF_MULTI_STREAM_CAPTURE), and pieces of
  // other steps (TF_MULTI_STREAM_CAPTURE_PIECES). Of both: with
  // parallel branches (TF_MULTI_STREAM_CAPTURE_BRANCHES); waited for by polling
  // instead of a host callback; and compared with a run without capture
  // (TF_MULTI_STREAM_CAPTURE_VERIFY).
  int64_t steps_replayed = 0;
  int64_t pieces_replayed = 0;
  int64_t replays_with_branches = 0;
  int64_t replays_polled = 0;
  int64_t replays_verified = 0;
  // Recordings made so far, recordings that exist now, and their memory.
  int64_t recordings_made = 0;
  int64_t recordings = 0;
  int64_t recording_bytes = 0;
  // The longest time that it took to make a recording.
  int64_t longest_recording_micros = 0;
  // The most memory, beside recording_bytes, that one launch of a recording
  // takes from CUDA's pool for graphs, such as cuBLAS workspaces. Steps that
  // run at the same time on several groups take this much each; the pool keeps
  // the memory afterwards.
  int64_t recording_workspace_bytes = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_STATS_H_
