// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which ops of a recorded step have to wait for which others? Ops are recorded
// one after the other. Two ops may run side by side if neither of them uses
// memory that the other one changes:
//
//   recorded   a -- b -- c -- d -- e        b and c read what a wrote,
//   waits      a -- b ------- d -- e        d what b wrote, e all of it
//               `-- c -------------'
//
// A use is a range of addresses, wherever a kernel gets the memory from. So an
// op that writes into reused memory waits for the ops that used that memory
// before.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"

namespace tensorflow::multistream {

// The bytes from `begin` to `end`.
struct MemoryUse {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writes = false;
};

MemoryUse UseOf(const void* address, size_t bytes, bool writes);

// Disjoint places of memory: overlapping uses are merged into one place.
class MemoryPlaces {
 public:
  explicit MemoryPlaces(std::vector<MemoryUse> uses);

  int size() const { return static_cast<int>(places_.size()); }
  const MemoryUse& operator[](int place) const { return places_[place]; }
  // The place that contains `address`, or -1.
  int Find(uint64_t address) const;

 private:
  std::vector<MemoryUse> places_;  // sorted by address; `writes` means nothing
};

// A block of the recording's memory, given out from `begin` to `end`.
struct Allocation {
  uint64_t begin = 0;
  uint64_t end = 0;
  size_t number = 0;  // of the allocations of a run, in order
};

struct RecordedOp {
  std::vector<MemoryUse> uses;
  int launches = 0;  // kernels, copies and the like
  // The uses are unknown: no other op runs beside this one.
  bool alone = false;
  // The op takes memory of a pool while it runs.
  bool takes_workspace = false;
  // Set if that is all that the op does.
  std::optional<ElementwiseOp> elementwise;
  // Allocations since the op before it, in order, and the numbers of those that
  // have been freed since then.
  std::vector<Allocation> made;
  std::vector<size_t> freed;
};

// For each of `ops`, which are in recorded order, the ops that it waits for: a
// transitive reduction. At most `chains` ops run at once, and at most
// `chains_with_workspace` ops that take a workspace: more cost more than they
// gain.
std::vector<std::vector<int>> OrderOf(const std::vector<RecordedOp>& ops,
                                      int chains, int chains_with_workspace);

// The launches on the critical path if ops have these `waits`: a measure of
// time. Waiting for an op of another chain counts as a few launches more.
int LengthOf(const std::vector<RecordedOp>& ops,
             const std::vector<std::vector<int>>& waits);

// Steps with more ops (long loops) get no branches: the time and memory to find
// the order grow with the square.
constexpr size_t kMostOpsWithBranches = 8192;

struct Branches {
  int chains = 0;      // the most that run at once
  int workspaces = 0;  // the most in use at once
  int launches = 0;
  int length = 0;  // see LengthOf
  std::vector<std::vector<int>> waits;
  // False if branches cost more than they gain: they are too short, or leave
  // most of the launches on the critical path.
  bool gain = false;
};

// Finds branches of `ops`, in at most `most` chains.
Branches BranchesOf(const std::vector<RecordedOp>& ops, int most);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_
