// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In what order do groups read and change state that outlives a step, such as
// variables?
//
// Only the leader's stream changes state. A reader's stream waits for the
// leader's last change. Before a change, the leader's stream waits for every
// group that has read:
//
//   leader   --- assign --x............. w --- assign ---
//                          \            /
//   group 2  -------------- w --- read x --------
//
//   (x: event recorded, w: stream waits for it)
//
// OpScope calls VariableOrder around the launch of each op that reads or may
// change state. Executors call it for steps that use results of the leader.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {

// The order of the groups of one GPU. Does not own the groups.
class VariableOrder {
 public:
  // Ordered by index; the first is the leader.
  explicit VariableOrder(std::vector<StreamGroup*> groups);

  // Call after enqueueing leader work that other groups may depend on.
  void NoteLeaderWork() { leader_work_.store(true, std::memory_order_release); }
  // Makes `group`'s stream wait for noted leader work, unless it has waited.
  void OrderAfterLeader(StreamGroup* group);

  // Identifies one variable, or one piece of other state, for its whole life.
  using Key = SidedLocks::Key;
  using Keys = absl::Span<const Key>;

  // Around the launch of an op that reads `state` on a group. The leader's
  // reads need no wait; the calls then only exclude changes meanwhile.
  void BeginRead(StreamGroup* group, Keys state);
  void EndRead(StreamGroup* group, Keys state);

  // Around the launch of an op, on the leader, that may change `state`.
  void BeginWrite(Keys state) { Begin(SidedLocks::kWriters, state); }
  void EndWrite(Keys state) { End(SidedLocks::kWriters, state); }

  // Around replacing the memory of a variable. Movers exclude readers, writers
  // and each other (table in sided_locks.h), because a kernel may look up a
  // variable's memory under the variable's mutex and write there after
  // releasing it.
  void BeginMove(Keys state) { Begin(SidedLocks::kMovers, state); }
  void EndMove(Keys state) { End(SidedLocks::kMovers, state); }

  // A version of the values of `state`. Changes when a change of any of them
  // begins; no value during a change. If the version before the first of two
  // steps is enqueued equals the version after the last is enqueued, both steps
  // read the same values.
  std::optional<int64_t> Version(Keys state) const;

  // The number of threads that wait in a Begin function. For tests.
  int64_t threads_that_wait() { return state_locks_.waiting(); }

 private:
  // Counts of the changes of all keys with one hash. Variables share counts, so
  // that the table has a fixed size.
  struct Writes {
    std::atomic<int64_t> begun{0};
    std::atomic<int64_t> ended{0};
  };
  static constexpr int kWriteCounts = 1024;

  // One group's, in its own cache lines: each read of a variable writes here.
  struct alignas(128) Reader {
    // Number of the last published event of the leader that the group's stream
    // has waited for.
    std::atomic<int64_t> published_seen{0};
    // Whether the group has read state since the leader last waited for it.
    std::atomic<bool> has_read{false};
  };

  StreamGroup* leader() const { return groups_[0]; }
  void Begin(SidedLocks::Side side, Keys state);
  void End(SidedLocks::Side side, Keys state);

  const std::vector<StreamGroup*> groups_;
  std::vector<Reader> readers_;

  std::atomic<bool> leader_work_{false};
  std::atomic<int64_t> published_{0};
  absl::Mutex publish_mu_;
  // Of the leader's stream, after its last noted work; made when first needed.
  std::unique_ptr<StreamEvent> event_ ABSL_GUARDED_BY(publish_mu_);

  // Held while an op that uses state is launched, not while the op runs: a
  // change and a read of the same variable reach the streams whole, one after
  // the other. During its launch an op may wait for memory, and the threads
  // that it excludes may be the ones that would free memory. So a lock excludes
  // only threads that use the same variable. A variable's own mutex does the
  // same in stock TensorFlow: kernels hold it while they allocate.
  SidedLocks state_locks_;
  std::array<Writes, kWriteCounts> writes_;
  absl::Mutex waits_mu_;  // held to enqueue the leader's waits for readers
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_
