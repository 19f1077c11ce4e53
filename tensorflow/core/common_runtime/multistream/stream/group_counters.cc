// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/group_counters.h"

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"

namespace tensorflow {
namespace multistream {

void GroupCounters::NoteHeld(int64_t tensors, int64_t bytes) {
  tensors_held_.fetch_add(tensors, std::memory_order_relaxed);
  const int64_t now =
      bytes_held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  RaiseTo(now, &peak_bytes_held_);
}

void GroupCounters::NoteLaunchWait(int64_t nanos) {
  RaiseTo(nanos, &longest_launch_wait_);
}

void GroupCounters::NoteRecordings(int recordings, int64_t bytes) {
  if (recordings > 0) {
    recordings_made_.fetch_add(recordings, std::memory_order_relaxed);
  }
  recordings_.fetch_add(recordings, std::memory_order_relaxed);
  recording_bytes_.fetch_add(bytes, std::memory_order_relaxed);
}

void GroupCounters::NoteNewRecording(int64_t nanos, int64_t workspace_bytes) {
  RaiseTo(nanos, &longest_recording_);
  RaiseTo(workspace_bytes, &recording_workspace_);
}

void GroupCounters::CopyTo(StreamGroupStats* stats) const {
  stats->steps_waiting = steps_waiting_.load(std::memory_order_relaxed);
  stats->longest_launch_wait_micros =
      longest_launch_wait_.load(std::memory_order_relaxed) / 1000;
  stats->steps_replayed = replays_.load(std::memory_order_relaxed);
  stats->replays_with_branches = branched_.load(std::memory_order_relaxed);
  stats->replays_polled = polled_.load(std::memory_order_relaxed);
  stats->replays_verified = verified_.load(std::memory_order_relaxed);
  stats->recordings_made = recordings_made_.load(std::memory_order_relaxed);
  stats->recordings = recordings_.load(std::memory_order_relaxed);
  stats->recording_bytes = recording_bytes_.load(std::memory_order_relaxed);
  stats->longest_recording_micros =
      longest_recording_.load(std::memory_order_relaxed) / 1000;
  stats->recording_workspace_bytes =
      recording_workspace_.load(std::memory_order_relaxed);
  stats->waits = waits_.load(std::memory_order_relaxed);
  stats->events = events_.load(std::memory_order_relaxed);
  stats->tensors_held = tensors_held_.load(std::memory_order_relaxed);
  stats->bytes_held = bytes_held_.load(std::memory_order_relaxed);
  stats->peak_bytes_held = peak_bytes_held_.load(std::memory_order_relaxed);
}

}  // namespace multistream
}  // namespace tensorflow
