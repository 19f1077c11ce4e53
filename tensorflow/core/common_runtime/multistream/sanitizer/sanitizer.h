// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which uses of the same memory by different stream groups are not ordered? And
// is memory freed or handed out while a group may still use it?
//
//   group 1  --- x writes M --r.
//                               \.
//   group 2  -------------------- w --- y reads M ----------   ordered
//
//   group 3  --------------------------------- z reads M ---   reported
//
//   (r: event recorded, w: stream waits for it)
//
// A vector clock per stream says what the stream has waited for, directly or
// through other streams. The code that enqueues work tells a Sanitizer of every
// launch, wait, allocation and so on, in the order in which they are enqueued.
//
// Learning on the host that a stream has completed a point settles lifetimes
// (memory may be freed once its last use is over), but orders nothing: between
// two uses that merely happened one after the other, a wait is missing.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/race_report.h"

namespace tensorflow::multistream {

// Identifies a CUDA event or its stand-in, for example by its address.
using EventId = uint64_t;

// What an op does with a part of memory.
struct Access {
  const void* address;
  size_t bytes;
  bool is_write;
  std::string tensor;
};

// A point in a stream, with all that the stream had waited for there.
using Position = VectorClock;

// Follows the streams of one GPU. Thread-safe: the order of the calls is taken
// as the order of the work. A group is an index below `group_count`.
class Sanitizer {
 public:
  using OnReport = std::function<void(const Report&)>;

  // One report per kind and pair of ops, and at most kMostReports in all.
  static constexpr size_t kMostReports = 4096;

  // `on_report` runs on the thread whose call found the race, without a lock.
  Sanitizer(int group_count, OnReport on_report);

  // `op` is launched on `group`'s stream and uses the memory in `accesses`.
  void Launch(int group, const std::string& op,
              const std::vector<Access>& accesses);

  // Records `event`, again or for the first time, at the end of `group`'s
  // stream.
  void Record(EventId event, int group);
  // `group`'s stream waits for the last record of `event`, if there is any.
  void Wait(int group, EventId event);
  // `group`'s stream waits for all that is enqueued on `other`'s.
  void WaitForTail(int group, int other);

  Position Tail(int group);
  // The host has learned that the stream completed `position`. Settles
  // lifetimes of memory; orders nothing.
  void Completed(const Position& position);
  // The host blocked until the stream had completed `position`, so all later
  // launches, on any stream, are ordered after `position`.
  void HostSynchronized(const Position& position);
  void HostSynchronized(int group) { HostSynchronized(Tail(group)); }

  // The allocator of group `owner` hands out memory. Its uses must be ordered
  // after the present end of `owner`'s stream: other groups have to wait.
  // `for_copy`: the first use is a copy that is ordered so, and all others
  // begin after the host has seen the copy end.
  void Allocate(int owner, const void* address, size_t bytes,
                bool for_copy = false);
  // Drops the earlier uses of freed memory: the next allocation there is
  // ordered after them by means that the sanitizer does not see.
  void Forget(const void* address, size_t bytes);
  // The allocator takes the memory back and may hand it out again at once. An
  // address that Allocate has not seen is ignored.
  void Free(const void* address);
  // Free and Allocate as one atomic call, for memory that an op of `owner`
  // wrote and nothing else holds: its lifetime begins anew. Atomic, since
  // another thread may use the memory at any moment and must not find it freed.
  // Does nothing for a part of what was allocated: others may have the rest.
  void Renew(int owner, const void* address, size_t bytes);

  int64_t report_count();
  // Ranges and blocks remembered, to check that the history is bounded.
  size_t history_size();

 private:
  // A use of [begin, end), at `position` of the stream of `use.group`.
  struct Touch {
    Use use;
    int64_t position;
    uintptr_t begin;
    uintptr_t end;
  };
  using TouchPtr = std::shared_ptr<const Touch>;
  using Touches = std::vector<TouchPtr>;

  // A range of memory whose bytes were all last used by the same ops.
  struct Range {
    uintptr_t end;
    TouchPtr write;
    Touches reads;  // after `write`; the last one of each group
  };

  // Memory handed out by an allocator, or freed and not handed out again.
  struct Block {
    uintptr_t end;
    int owner;
    bool live;
    // The last use by each group before this life and, once it is over, in this
    // life. All later uses must be ordered after these.
    Touches before;
    TouchPtr freed;  // unless live
  };

  bool Ordered(int group, const Touch& touch) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return touch.position <= known_[group][touch.use.group];
  }
  bool HasPassed(const Touch& touch) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return touch.position <= completed_[touch.use.group];
  }

  void CheckLifetime(const Touch& touch, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CheckOrder(const Touch& touch, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remember(const TouchPtr& touch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets the ranges of [begin, end); returns each group's last use in them.
  Touches TakeTouches(uintptr_t begin, uintptr_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes room for a block at `now`: removes the blocks that overlap it.
  // Returns the uses that the new block must be ordered after.
  Touches TakeBlocks(const Touch& now, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops from `touches` the uses that have completed. Reports and drops the
  // uses that `now` is not ordered after.
  void SettleLifetimes(const Touch& now, ReportKind kind, Touches* touches,
                       std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Find(ReportKind kind, const Touch& current, const Touch& previous,
            std::vector<Report>* found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Once the history has grown, forgets uses that all streams come after.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AllocateLocked(int owner, const void* address, size_t bytes,
                      bool for_copy, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeLocked(const void* address, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const OnReport on_report_;

  absl::Mutex mu_;
  // Per group: what its stream has waited for. Own entry: what it launched.
  std::vector<VectorClock> known_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> last_op_ ABSL_GUARDED_BY(mu_);
  VectorClock completed_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<EventId, VectorClock> events_ ABSL_GUARDED_BY(mu_);
  // Both by first address. Ranges never overlap, and neither do blocks.
  std::map<uintptr_t, Range> ranges_ ABSL_GUARDED_BY(mu_);
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mu_);
  size_t sweep_at_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> reported_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_H_
