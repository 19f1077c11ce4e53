// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads may hold the lock of the same variable at once? VariableOrder
// takes these locks for ops that read a variable, for ops that change it, and
// for code that moves its memory. This is group mutual exclusion, with one
// group (movers) whose members exclude each other, too.
//
// Which sides exclude each other, on a common key:
//
//              readers   writers   movers
//   readers    -         excludes  excludes
//   writers    excludes  -         excludes
//   movers     excludes  excludes  excludes
//
//   reader   launches an op, or a recording, that reads the variable
//   writer   launches an op that changes the variable. Writers need no more
//            exclusion among each other than stock TensorFlow gives them:
//            kernels change a variable under the variable's mutex (or none,
//            with locking off), in the order of the leader's stream
//   mover    gives the variable other memory, for a time or for good: a step
//            that changes variables while it is recorded or launched, or a
//            move of a variable to its home (variable_home.h). Two movers at
//            once would each mistake the other's temporary memory for the
//            variable's own

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"

namespace tensorflow::multistream {

// A lock for each key. A thread takes the locks of all its keys at once; while
// it waits, it holds none of them. Fair: on each key, a thread does not
// overtake an earlier thread that it excludes. Not recursive. A lock that no
// thread holds or waits for takes no memory.
class SidedLocks {
 public:
  enum Side { kReaders, kWriters, kMovers };
  using Key = uint64_t;

  // Whether two threads of these sides exclude each other.
  static bool Exclude(Side a, Side b) {
    constexpr Rule kRules[3][3] = {
        {Rule::kNone, Rule::kReadersExcludeWriters,
         Rule::kMoversExcludeReaders},
        {Rule::kReadersExcludeWriters, Rule::kNone,
         Rule::kMoversExcludeWriters},
        {Rule::kMoversExcludeReaders, Rule::kMoversExcludeWriters,
         Rule::kMoversExcludeMovers}};
    const Rule rule = kRules[a][b];
    return rule != Rule::kNone && IsKept(rule);
  }

  // `keys` may contain duplicates. Without keys, never waits.
  void Enter(Side side, absl::Span<const Key> keys);
  // With the side and keys of Enter.
  void Leave(Side side, absl::Span<const Key> keys);

  // The number of locks that some thread holds or waits for.
  int64_t size();
  // The number of threads that wait in Enter.
  int64_t waiting();

 private:
  // A thread that waits.
  struct Request {
    const Side side;
    const absl::Span<const Key> keys;
    bool admitted = false;
    absl::CondVar changed;
  };
  struct Lock {
    int inside[3] = {0, 0, 0};

    bool IsEmpty() const { return inside[0] + inside[1] + inside[2] == 0; }
    bool HasOneThatExcludes(Side side) const {
      for (Side other : {kReaders, kWriters, kMovers}) {
        if (inside[other] > 0 && Exclude(side, other)) return true;
      }
      return false;
    }
    std::vector<Request*> waiting;  // in order of arrival
  };

  // `request`: the request of a thread that waits already; nullptr for a thread
  // that has just called Enter.
  bool MayEnter(Side side, absl::Span<const Key> keys, const Request* request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Admits each thread that waits for `key` and may enter now.
  void Admit(Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  absl::flat_hash_map<Key, Lock> locks_ ABSL_GUARDED_BY(mu_);
  int64_t waiting_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_SIDED_LOCKS_H_
