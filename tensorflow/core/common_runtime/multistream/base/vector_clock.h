// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which work is ordered before a point in a stream? A vector clock has, for
// each stream group, the position up to which the group's work comes before
// the point. A wait joins the clock of the event:
//
//   group 0   1 ---- 2 ------------- 3        after its wait, group 1 has
//                     \                       {0: 2, 1: 5}: whatever group 0
//   group 1   4 ------- wait ------- 5        has done up to 2 lies before
//
// Used for the order of streams, by the sanitizer and emulated GPUs to check
// that order, and by policies to estimate a step's time.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_VECTOR_CLOCK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_VECTOR_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/raise_to.h"

namespace tensorflow::multistream {

// Positions count from 1; groups start at 0.
class VectorClock {
 public:
  int64_t operator[](int group) const {
    return static_cast<size_t>(group) < at_.size() ? at_[group] : 0;
  }
  // Whether `position` of `group` is ordered before this point.
  bool Covers(int group, int64_t position) const {
    return (*this)[group] >= position;
  }
  // Makes the group's position at least `position`.
  void Raise(int group, int64_t position) {
    if (static_cast<size_t>(group) >= at_.size()) at_.resize(group + 1);
    at_[group] = std::max(at_[group], position);
  }
  // Union: also covers all that `other` covers.
  void Join(const VectorClock& other) {
    if (at_.size() < other.at_.size()) at_.resize(other.at_.size());
    for (size_t i = 0; i < other.at_.size(); ++i) {
      at_[i] = std::max(at_[i], other.at_[i]);
    }
  }
  // Intersection: covers only what both covered.
  void Meet(const VectorClock& other) {
    for (size_t i = 0; i < at_.size(); ++i) {
      at_[i] = std::min(at_[i], other[static_cast<int>(i)]);
    }
  }

 private:
  std::vector<int64_t> at_;
};

// A vector clock of `groups` groups that some threads read while others raise
// it. Read is not atomic: each position is from some moment of the call.
class SharedVectorClock {
 public:
  explicit SharedVectorClock(int groups) : at_(groups) {}

  bool Covers(int group, int64_t position) const {
    return at_[group].load(std::memory_order_acquire) >= position;
  }
  void Raise(int group, int64_t position) { RaiseTo(position, &at_[group]); }
  void Join(const VectorClock& other) {
    for (size_t i = 0; i < at_.size(); ++i) {
      RaiseTo(other[static_cast<int>(i)], &at_[i]);
    }
  }
  VectorClock Read() const {
    VectorClock clock;
    for (size_t i = at_.size(); i > 0; --i) {
      clock.Raise(static_cast<int>(i - 1),
                  at_[i - 1].load(std::memory_order_acquire));
    }
    return clock;
  }

 private:
  std::vector<std::atomic<int64_t>> at_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_VECTOR_CLOCK_H_
