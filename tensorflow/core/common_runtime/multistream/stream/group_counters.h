// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What has a stream group done so far? Counters that the runtime updates and
// stream_stats() reads. They are metrics only: no decision depends on them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"

namespace tensorflow {
namespace multistream {

// Thread-safe.
class GroupCounters {
 public:
  // The group's stream was told to wait for another one.
  void NoteWait() { Count(&waits_); }
  // An event was recorded on the group's stream.
  void NoteEvent() { Count(&events_); }

  // Adds to the number and bytes of other groups' tensors that are held for
  // this group. Negative: holds were dropped.
  void NoteHeld(int64_t tensors, int64_t bytes);

  // Adds to the number of the group's steps that wait for a thread to launch
  // their ops. May be negative.
  void NoteStepsWaiting(int steps) {
    steps_waiting_.fetch_add(steps, std::memory_order_relaxed);
  }
  // A step waited for `nanos` for a thread or for a lock of the CUDA driver.
  void NoteLaunchWait(int64_t nanos);

  // A recorded step was launched.
  void NoteReplay(bool with_branches) {
    Count(&replays_);
    if (with_branches) Count(&branched_);
  }
  // The thread that launched a recorded step saw the step's end by polling.
  void NotePolled() { Count(&polled_); }
  void NoteVerified() { Count(&verified_); }
  // Adds to the number and bytes of recordings of the group's steps. May be
  // negative.
  void NoteRecordings(int recordings, int64_t bytes);
  // A recording took `nanos` to make; each launch takes `workspace_bytes` of
  // CUDA's pool for graphs.
  void NoteNewRecording(int64_t nanos, int64_t workspace_bytes);

  // Fills in the fields of `stats` that are counted here.
  void CopyTo(StreamGroupStats* stats) const;

 private:
  static void Count(std::atomic<int64_t>* counter) {
    counter->fetch_add(1, std::memory_order_relaxed);
  }

  std::atomic<int64_t> waits_{0};
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> tensors_held_{0};
  std::atomic<int64_t> bytes_held_{0};
  std::atomic<int64_t> peak_bytes_held_{0};
  std::atomic<int64_t> steps_waiting_{0};
  std::atomic<int64_t> longest_launch_wait_{0};  // nanoseconds
  std::atomic<int64_t> replays_{0};
  std::atomic<int64_t> branched_{0};
  std::atomic<int64_t> polled_{0};
  std::atomic<int64_t> verified_{0};
  std::atomic<int64_t> recordings_made_{0};
  std::atomic<int64_t> recordings_{0};
  std::atomic<int64_t> recording_bytes_{0};
  std::atomic<int64_t> longest_recording_{0};  // nanoseconds
  std::atomic<int64_t> recording_workspace_{0};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_
