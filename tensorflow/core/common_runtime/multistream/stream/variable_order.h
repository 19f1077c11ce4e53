// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In what order do groups read and change state that outlives a step, such as
// variables?
//
// Only the leader's stream changes state. A reader's stream waits for the last
// change of what it reads. Before a change, the leader's stream waits for every
// group that has read what is changed:
//
//   leader   --- assign a --x-- assign b --.... w --- assign a ---
//                            \                 /
//   group 2  --------------- w --- read a ----x
//   group 3  --- read c ------------------------- read c ---------
//
//   (x: event recorded, w: stream waits for it)
//
// A wait is for all that the other stream has been given by then. Uses of
// different state need none:
//
//   who                     its stream waits for        excludes, on the host
//
//   reads a, on a group     the leader's last change    changes of a
//                           of a
//   changes a, on the       each group that has read    reads of a, and more
//   leader                  a since the last such wait  (sided_locks.h)
//   takes tensors that the  all noted work of the       nobody
//   leader computes         leader
//
// Two marks of a key say so. Both err on the side of a wait:
//
//   changed  The leader's work is numbered. A key has the number of its last
//            change, and a group the number up to which its stream has waited.
//            A change gets its number once it is launched. So an event that is
//            recorded after the number n is read comes after all work up to n.
//   read_by  The groups that have read the key, a bit each. A read sets its
//            bit once it is launched. A change takes the bits first and makes
//            the leader wait for these groups then, so that the wait covers the
//            reads of all bits taken. A mutex is held meanwhile: who finds a
//            bit taken launches after that wait.
//
// The marks are in a table of three rows. A key has a slot in each row, which
// other keys share. Its number is the least of its slots', because the number
// in a slot only grows. Its groups are those with a bit in each of its slots;
// a wait for the last work of a group covers the reads of other keys, too, so
// taking a bit that another key has set is right. A key that shares all three
// slots with a key that is changed, or read, waits in vain. Beside a thousand
// variables that are changed that is one key in 37,000.
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
  void NoteLeaderWork();
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

  // The slots of a key in the table are parts of the key, which is a hash: keys
  // with the same `kRows` * `kSlotBits` low bits share all slots.
  static constexpr int kRows = 3;
#if defined(TFMS_SEARCHED)
  static constexpr int kSlotBits = 2;  // each interleaving makes a table
#else
  static constexpr int kSlotBits = 15;  // 1.5 MiB
#endif

 private:
  // Counts of the changes of all keys with one hash. Variables share counts, so
  // that the table has a fixed size.
  struct Writes {
    std::atomic<int64_t> begun{0};
    std::atomic<int64_t> ended{0};
  };
  static constexpr int kWriteCounts = 1024;

  struct Slot {
    std::atomic<int64_t> changed{0};
    std::atomic<uint64_t> read_by{0};
  };

  // In cache lines of its own: each read of a variable looks here.
  struct alignas(128) Seen {
    // The group's stream waits for the leader's work up to this number.
    std::atomic<int64_t> number{0};
  };

  StreamGroup* leader() const { return groups_[0]; }
  Slot& SlotOf(Key key, int row) const {
    const Key slot = key >> (row * kSlotBits) & ((Key{1} << kSlotBits) - 1);
    return slots_[(static_cast<Key>(row) << kSlotBits) + slot];
  }
  void Begin(SidedLocks::Side side, Keys state);
  void End(SidedLocks::Side side, Keys state);
  // Makes `group`'s stream wait for the leader's work up to `number`.
  void OrderAfterWork(StreamGroup* group, int64_t number);
  // Call once a change of `state`, or a read of it by `group`, is launched.
  void NoteChange(Keys state);
  void NoteRead(const StreamGroup* group, Keys state);
  // Makes the leader's stream wait for the groups that have read `state`.
  void OrderAfterReaders(Keys state);
  int64_t LastChangeOf(Key key) const;
  uint64_t ReadersOf(Key key) const;  // a bit each
  // Call before the leader's stream is made to wait for the `readers`.
  void TakeMarks(Keys state, uint64_t readers);

  const std::vector<StreamGroup*> groups_;
  std::vector<Seen> seen_;
  // nullptr if the leader is alone: then its stream orders all, and nothing is
  // noted.
  const std::unique_ptr<Slot[]> slots_;

  std::atomic<int64_t> work_{0};  // the number of the leader's last noted work
  absl::Mutex numbers_mu_;        // held to number a change in all its slots
  absl::Mutex publish_mu_;
  // Of the leader's stream, after its work up to the number `published_`; made
  // when first needed.
  std::unique_ptr<StreamEvent> event_ ABSL_GUARDED_BY(publish_mu_);
  int64_t published_ ABSL_GUARDED_BY(publish_mu_) = 0;

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
