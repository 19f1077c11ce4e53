// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In what order do groups read and change variables, and other state that
// outlives a step?
//
// Only the leader's stream changes it. A reader's stream waits for the leader's
// last change; the leader's stream, before a change, waits for every group that
// has read:
//
//   leader   --- assign --x............. w --- assign ---
//                          \            /
//   group 2  -------------- w --- read x --------
//
//   (x: event recorded, w: stream waits for it)
//
// OpScope calls it around the launch of each op that reads or may change state,
// and executors for steps that take what the leader has made.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow {
namespace multistream {

// Of the groups of one GPU, which it does not own.
class VariableOrder {
 public:
  // Ordered by index; the first is the leader.
  explicit VariableOrder(std::vector<StreamGroup*> groups);

  // Work that other groups may depend on is enqueued on the leader's stream.
  void NoteLeaderWork() { leader_work_.store(true, std::memory_order_release); }
  // `group`'s stream waits for the leader's noted work, unless it has already.
  void OrderAfterLeader(StreamGroup* group);

  // A variable, or other state: the same one always has the same key.
  using Key = SidedLocks::Key;
  using Keys = absl::Span<const Key>;

  // Around launching an op that reads `state` on a group. On the leader there
  // is no need, but to keep others from changing it meanwhile.
  void BeginRead(StreamGroup* group, Keys state);
  void EndRead(StreamGroup* group, Keys state);

  // Around launching an op that may change `state`, on the leader.
  void BeginWrite(Keys state) { Begin(SidedLocks::kWriters, state); }
  void EndWrite(Keys state) { End(SidedLocks::kWriters, state); }

  // The same for what puts other memory in the place of a variable's. Movers
  // keep out readers, writers and each other (sided_locks.h has the table):
  // kernels may find a variable's memory under its mutex and write there
  // without it.
  void BeginMove(Keys state) { Begin(SidedLocks::kMovers, state); }
  void EndMove(Keys state) { End(SidedLocks::kMovers, state); }

  // Another number as soon as somebody has begun to change one of `state`; none
  // while somebody does. So two steps for which it is the same, before the
  // first one was enqueued and after the last one was, read the same values.
  std::optional<int64_t> Version(Keys state) const;

  // Threads that wait in one of the Begin functions. For tests.
  int64_t threads_that_wait() { return state_locks_.waiting(); }

 private:
  // The writes of the keys whose hash it is: more than one variable's are
  // counted together rather than to remember every variable.
  struct Writes {
    std::atomic<int64_t> begun{0};
    std::atomic<int64_t> ended{0};
  };
  static constexpr int kWriteCounts = 1024;

  // Of one group, in cache lines of its own: each read of a variable writes it.
  struct alignas(128) Reader {
    // The number of the leader's last published event that the group's stream
    // waited for.
    std::atomic<int64_t> published_seen{0};
    // True if it has read state since the leader last waited for it.
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

  // Held while an op that touches state is launched, never while it runs: a
  // change and a read of the same variable reach the streams whole, one after
  // the other. While it is launched an op may wait for memory, and those that
  // it keeps out may be the ones that would free some. So it keeps out no
  // more than a variable's own mutex does, which kernels hold while they
  // allocate, in stock TensorFlow too: who uses other variables goes on.
  SidedLocks state_locks_;
  std::array<Writes, kWriteCounts> writes_;
  absl::Mutex waits_mu_;  // while the leader's waits for readers are enqueued
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_VARIABLE_ORDER_H_
