// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which uses of memory by different stream groups does nothing order? And is
// memory freed or handed out while a group may still use it?
//
//   group 1  --- x writes M --r.
//                               \.
//   group 2  -------------------- w --- y reads M ----------   ordered
//
//   group 3  --------------------------------- z reads M ---   reported
//
//   (r: event recorded, w: stream waits for it)
//
// A vector clock per stream says what the stream has waited for, itself or
// through others. This file knows nothing of devices: whoever enqueues work on
// the streams tells a Sanitizer of every launch, wait, allocation and so on, in
// the order in which they are enqueued.
//
// Knowing that a stream has completed a point is not the same as waiting for
// it: it settles lifetimes (memory may be freed once its last use is over), but
// two uses that merely happened one after the other are a missing wait.

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

namespace tensorflow {
namespace multistream {

// Names a CUDA event or what takes its place, such as by its address.
using EventId = uint64_t;

// What an op does with a part of memory.
struct Access {
  const void* address;
  size_t bytes;
  bool is_write;
  std::string tensor;
};

// A point in a stream, with all that the stream had waited for there.
class Position {
 private:
  friend class Sanitizer;
  VectorClock clock_;
};

// Follows the streams of one GPU. Thread-safe: calls count in the order in
// which they come. A group is an index below `group_count`.
class Sanitizer {
 public:
  using OnReport = std::function<void(const Report&)>;

  // Reports are made once per pair of ops and kind, and kMostReports at most.
  static constexpr size_t kMostReports = 4096;

  // `on_report` runs on the thread whose call found the race, without a lock.
  Sanitizer(int group_count, OnReport on_report);

  // `op`, which uses memory as `accesses` say, is launched on `group`'s stream.
  void Launch(int group, const std::string& op,
              const std::vector<Access>& accesses);

  // Records `event`, again or for the first time, at the end of `group`'s
  // stream.
  void Record(EventId event, int group);
  // `group`'s stream waits for the last record of `event`, if there is any.
  void Wait(int group, EventId event);
  // `event` is destroyed.
  void ForgetEvent(EventId event);
  // `group`'s stream waits for all that is enqueued on `other`'s.
  void WaitForTail(int group, int other);

  Position Tail(int group);
  // The host has learned that the stream completed `position`. Settles
  // lifetimes of memory; orders nothing.
  void Completed(const Position& position);
  // The host went on only after the stream had completed `position`: whatever
  // is launched from now on, on any stream, comes after it.
  void HostSynchronized(const Position& position);
  void HostSynchronized(int group) { HostSynchronized(Tail(group)); }

  // The allocator of group `owner` hands out memory, to be used in the order
  // of `owner`'s stream: by other groups only after waiting for it.
  // `for_copy`: nobody uses it before the host has seen a copy into it end,
  // which itself came after all that was enqueued on `owner`'s stream.
  void Allocate(int owner, const void* address, size_t bytes,
                bool for_copy = false);
  // Whoever hands out memory there next has put it after all earlier uses, in
  // ways that this does not see.
  void Forget(const void* address, size_t bytes);
  // The allocator takes it back and may hand it out again at once. An address
  // that Allocate has not seen is ignored.
  void Free(const void* address);
  // Free and Allocate in one: an op of `owner` wrote into memory that nobody
  // else holds, whose lifetime may as well begin anew. Another thread may use
  // it at any moment, and must not find it freed.
  void Renew(int owner, const void* address, size_t bytes);

  int64_t report_count();
  // Parts of memory with a history of their own, to watch that it is bounded.
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

  // A part of memory of which every byte was last used by the same ops.
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
    // Of earlier lives, and of this one if over: the last use of each group.
    // Who uses the block comes after them.
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
  // Makes room for a block where `now` is: ends those that overlap it. Returns
  // the uses that the new one comes after.
  Touches TakeBlocks(const Touch& now, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops from `touches` those that are over. Reports and drops those that
  // `now` does not come after.
  void SettleLifetimes(const Touch& now, ReportKind kind, Touches* touches,
                       std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Find(ReportKind kind, const Touch& current, const Touch& previous,
            std::vector<Report>* found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets uses that every stream comes after, once the history has grown.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AllocateLocked(int owner, const void* address, size_t bytes,
                      bool for_copy, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeLocked(const void* address, std::vector<Report>* found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const OnReport on_report_;

  absl::Mutex mu_;
  // What each stream has waited for, and of itself what it has launched.
  std::vector<VectorClock> known_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> last_op_ ABSL_GUARDED_BY(mu_);
  VectorClock completed_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<EventId, VectorClock> events_ ABSL_GUARDED_BY(mu_);
  // Both by first address. Neither overlap among themselves.
  std::map<uintptr_t, Range> ranges_ ABSL_GUARDED_BY(mu_);
  std::map<uintptr_t, Block> blocks_ ABSL_GUARDED_BY(mu_);
  size_t sweep_at_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_set<std::string> reported_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_SANITIZER_H_
