// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which waits between the streams of one GPU's groups are needed, and which are
// implied by earlier ones? A run of a graph whose nodes have groups
// (node_level_run) asks for each wait, and a step for what it holds.
//
// Each group counts its launches. A group "knows" another one up to the
// position that its stream has waited for, directly or through others: a vector
// clock for each stream. A wait for a position that is known already is not
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

namespace tensorflow {
namespace multistream {

// Thread-safe. A position is of one group, and counts from 1; 0 is before all.
class StreamOrder {
 public:
  // `reduce`: leave out waits for what is known.
  StreamOrder(GpuGroups* gpu, bool reduce);

  // An event of a group, and what waiting for it makes known.
  struct RecordedEvent {
    int group = 0;
    int64_t position = 0;  // 0: not recorded
    VectorClock known;
    std::unique_ptr<StreamEvent> event;
  };

  // To be called when something has been launched on `group`: the position that
  // covers it.
  int64_t Launched(int group) {
    return positions_[group].fetch_add(1, std::memory_order_acq_rel) + 1;
  }

  // Records an event behind all that is enqueued on `group`'s stream so far.
  std::unique_ptr<RecordedEvent> Record(int group);
  // No stream will wait for the event any more.
  void Recycle(std::unique_ptr<RecordedEvent> recorded);

  // Makes `group`'s stream wait.
  void WaitFor(int group, const RecordedEvent& recorded);
  // For the end of `other`'s stream, if `position` is not known.
  void WaitForTail(int group, int other, int64_t position);
  // For all that is enqueued on `other`'s stream, noted by Launched or not.
  void WaitForAll(int group, int other);

  bool Knows(int group, int other, int64_t position) const {
    return group == other || known_[group].Covers(other, position);
  }

  // Of all steps since the process began.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_ORDER_H_
