// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What has a stream group done so far? Counters that the runtime updates and
// stream_stats() reads. They are metrics only: no decision depends on them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"
#include "tensorflow/core/common_runtime/multistream/stream/recent_maximum.h"

namespace tensorflow::multistream {

// Thread-safe.
class GroupCounters {
 public:
  // The group's stream was told to wait for another one.
  void NoteWait() { waits_.Add(1); }
  // An event was recorded on the group's stream.
  void NoteEvent() { events_.Add(1); }
  // Adds to the number and bytes of other groups' tensors that are held for
  // this group. Negative: holds were dropped.
  void NoteHeld(int64_t tensors, int64_t bytes) {
    tensors_held_.Add(tensors);
    peak_bytes_held_.Raise(bytes_held_.Add(bytes));
  }
  // Adds to the number of the group's steps that wait for a thread to launch
  // their ops. May be negative.
  void NoteStepsWaiting(int steps) { steps_waiting_.Add(steps); }
  // A step waited for `nanos` for a thread or for a lock of the CUDA driver.
  void NoteLaunchWait(int64_t nanos) {
    longest_launch_wait_.Note(nanos / 1000, Minute());
  }
  // A recorded step, or piece of a step, was launched.
  void NoteReplay(bool is_piece, bool with_branches) {
    (is_piece ? pieces_ : replays_).Add(1);
    if (with_branches) branched_.Add(1);
  }
  // The thread that launched a recorded step saw the step's end by polling.
  void NotePolled() { polled_.Add(1); }
  void NoteVerified() { verified_.Add(1); }
  // Adds to the number and bytes of recordings of the group's steps. May be
  // negative.
  void NoteRecordings(int recordings, int64_t bytes) {
    if (recordings > 0) recordings_made_.Add(recordings);
    recordings_.Add(recordings);
    recording_bytes_.Add(bytes);
  }
  // A recording took `nanos` to make; each launch takes `workspace_bytes` of
  // CUDA's pool for graphs.
  void NoteNewRecording(int64_t nanos, int64_t workspace_bytes) {
    longest_recording_.Raise(nanos);
    recording_workspace_.Raise(workspace_bytes);
  }

  // Fills in the fields of `stats` that are counted here.
  void CopyTo(StreamGroupStats* stats) const {
    stats->waits = waits_.value();
    stats->events = events_.value();
    stats->tensors_held = tensors_held_.value();
    stats->bytes_held = bytes_held_.value();
    stats->peak_bytes_held = peak_bytes_held_.value();
    stats->steps_waiting = steps_waiting_.value();
    stats->longest_launch_wait_micros = longest_launch_wait_.value(Minute());
    stats->steps_replayed = replays_.value();
    stats->pieces_replayed = pieces_.value();
    stats->replays_with_branches = branched_.value();
    stats->replays_polled = polled_.value();
    stats->replays_verified = verified_.value();
    stats->recordings_made = recordings_made_.value();
    stats->recordings = recordings_.value();
    stats->recording_bytes = recording_bytes_.value();
    stats->longest_recording_micros = longest_recording_.value() / 1000;
    stats->recording_workspace_bytes = recording_workspace_.value();
  }

 private:
  class Counter {
   public:
    // Returns the new value.
    int64_t Add(int64_t n) {
      return value_.fetch_add(n, std::memory_order_relaxed) + n;
    }
    void Raise(int64_t value) { RaiseTo(value, &value_); }
    int64_t value() const { return value_.load(std::memory_order_relaxed); }

   private:
    std::atomic<int64_t> value_{0};
  };

  static int64_t Minute() {
    return std::chrono::duration_cast<std::chrono::minutes>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  Counter waits_, events_;
  Counter tensors_held_, bytes_held_, peak_bytes_held_;
  Counter steps_waiting_;
  RecentMaximum longest_launch_wait_;  // in microseconds
  Counter replays_, pieces_, branched_, polled_, verified_;
  Counter recordings_made_, recordings_, recording_bytes_;
  Counter longest_recording_;  // in nanoseconds
  Counter recording_workspace_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_GROUP_COUNTERS_H_
