// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which waits between the streams of one GPU's groups are needed, and which are
// implied by earlier ones? Node-level runs ask for each wait between nodes;
// StepHolds asks before a hold is dropped early.
//
// Each group counts its launches; a count is a position. Each stream has a
// vector clock: it "knows" another group up to the position that it has waited
// for, directly or through other groups. A wait for a known position is not
// enqueued.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_ORDER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {

// Thread-safe. A position is one group's, from 1; 0 is before all launches.
class StreamOrder {
 public:
  // `reduce`: leave out waits for known positions.
  StreamOrder(GpuGroups* gpu, bool reduce);

  // An event of a group, and the positions that a waiter then knows.
  struct RecordedEvent {
    int group = 0;
    int64_t position = 0;  // 0: not recorded
    VectorClock known;
    std::unique_ptr<StreamEvent> event;
  };

  // Call after each launch on `group`. Returns the position of the launch.
  int64_t Launched(int group) {
    return positions_[group].fetch_add(1, std::memory_order_acq_rel) + 1;
  }

  // Records an event after all that is enqueued on `group`'s stream.
  std::unique_ptr<RecordedEvent> Record(int group);
  // Call when no stream will wait for the event any more.
  void Recycle(std::unique_ptr<RecordedEvent> recorded);

  // Makes `group`'s stream wait for the event.
  void WaitFor(int group, const RecordedEvent& recorded);
  // Makes `group`'s stream wait for the end of `other`'s, unless `group` knows
  // `position`.
  void WaitForTail(int group, int other, int64_t position);
  // Like WaitForTail, for all that is enqueued on `other`'s stream, including
  // work that was not counted by Launched.
  void WaitForAll(int group, int other);

  bool Knows(int group, int other, int64_t position) const {
    return group == other || known_[group].Covers(other, position);
  }

  // Over all steps since the process began.
  struct Counts {
    int64_t recorded = 0;
    int64_t waited = 0;
    int64_t known = 0;  // waits that were left out because of Knows
  };
  Counts counts() const;

 private:
  bool MayLeaveOut(int group, int other, int64_t position);
  void Learn(int group, int other, int64_t position, const VectorClock& known);

  GpuGroups* const gpu_;
  const bool reduce_;
  std::vector<std::atomic<int64_t>> positions_;
  std::vector<SharedVectorClock> known_;  // of each group
  std::atomic<int64_t> recorded_{0};
  std::atomic<int64_t> waited_{0};
  std::atomic<int64_t> left_out_{0};

  absl::Mutex mu_;
  std::vector<std::vector<std::unique_ptr<RecordedEvent>>> spare_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_ORDER_H_
