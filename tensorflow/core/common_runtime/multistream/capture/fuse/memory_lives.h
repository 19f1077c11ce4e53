// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which allocations does each op of a recorded step use? An address alone does
// not say it: a recording gives the same memory out again and again.
//
//   ops      a  b  c  d        a makes what b uses; then c gets the memory, and
//   memory   [----][--]        d uses that: two lives of one place

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_MEMORY_LIVES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_MEMORY_LIVES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"

namespace tensorflow::multistream {

inline constexpr int kNever = std::numeric_limits<int>::max();

// The life of a place in memory: one allocation.
struct Life {
  int place;
  int64_t allocation = -1;  // its number; -1: not of this step
  uint64_t bytes = 0;
  int end = kNever;  // the op by which it has been freed
  struct User {
    int op;
    bool writes;
  };
  std::vector<User> users;  // in recorded order
  bool is_written = false;  // by one of the users
};

// All lives of a step's memory, and which of them each op uses.
class MemoryLives {
 public:
  explicit MemoryLives(const std::vector<RecordedOp>& ops);

  struct Used {
    int life;
    bool writes;
  };
  const std::vector<Used>& UsedBy(int op) const { return used_by_[op]; }
  const Life& operator[](int life) const { return lives_[life]; }
  int size() const { return static_cast<int>(lives_.size()); }

  // The life in which op `op` uses `address`, or -1.
  int Find(int op, uint64_t address) const;

  // The lives of a place, first to last.
  const std::vector<int>& OfPlace(int place) const { return lives_of_[place]; }

 private:
  void FindShared(const std::vector<RecordedOp>& ops);
  void Begin(const Allocation& made, int op);
  void End(size_t number, int op);
  void Use(int op, const MemoryUse& use);

  const MemoryPlaces places_;
  std::vector<Life> lives_;
  absl::flat_hash_map<size_t, int> by_number_;  // of allocations
  std::vector<std::vector<int>> lives_of_;      // by place
  std::vector<bool> is_shared_;                 // by place
  std::vector<std::vector<Used>> used_by_;      // by op
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_MEMORY_LIVES_H_
