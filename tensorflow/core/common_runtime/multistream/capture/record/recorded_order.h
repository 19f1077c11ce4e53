// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which ops of a recorded step have to wait for which others? They were
// recorded one after the other. They may as well run side by side where none of
// them uses what another one changes:
//
//   recorded   a -- b -- c -- d -- e        b and c read what a wrote,
//   waits      a -- b ------- d -- e        d what b wrote, e all of it
//               `-- c -------------'
//
// A use is one of memory, wherever a kernel gets it from: so an op that writes
// into memory that is free again waits for those that have used it before.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorflow {
namespace multistream {

// The bytes from `begin` to `end`.
struct MemoryUse {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writes = false;
};

MemoryUse UseOf(const void* address, size_t bytes, bool writes);

// Memory that is all used alike: what overlaps is one place.
class MemoryPlaces {
 public:
  explicit MemoryPlaces(std::vector<MemoryUse> uses);

  int size() const { return static_cast<int>(places_.size()); }
  const MemoryUse& operator[](int place) const { return places_[place]; }
  // The place that has an address, or -1.
  int Find(uint64_t address) const;

 private:
  std::vector<MemoryUse> places_;  // in order; whether one is written is open
};

struct RecordedOp {
  std::vector<MemoryUse> uses;
  int launches = 0;  // kernels, copies and the like
  // Nobody knows what it uses: all others are before it, or after it.
  bool alone = false;
  // It takes memory of a pool while it runs.
  bool takes_workspace = false;
};

// Of `ops` in the order in which they were recorded: those that each of them
// has to wait for, none of which waits for another one of them. At most
// `chains` ops run at once, and `chains_with_workspace` of those that take one:
// more side by side costs more than it gains.
std::vector<std::vector<int>> OrderOf(const std::vector<RecordedOp>& ops,
                                      int chains, int chains_with_workspace);

// How many launches are one after the other, at least, if ops wait for these: a
// measure of time. What comes after several takes a little longer.
int LengthOf(const std::vector<RecordedOp>& ops,
             const std::vector<std::vector<int>>& waits);

// As with long loops: time and memory to find their order grow with the square.
constexpr size_t kMostOpsWithBranches = 8192;

struct Branches {
  int chains = 0;      // that run at once, at most
  int workspaces = 0;  // in use at once, at most
  int launches = 0;
  int length = 0;  // as of LengthOf
  std::vector<std::vector<int>> waits;
  // Short branches cost more than they gain, and so do those that leave most of
  // the launches one after the other.
  bool gain = false;
};

// Of up to `most` chains.
Branches BranchesOf(const std::vector<RecordedOp>& ops, int most);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDED_ORDER_H_
