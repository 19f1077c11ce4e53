// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What was the largest value of late? A maximum that falls again, so that an
// alarm that looks at it ends.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECENT_MAXIMUM_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECENT_MAXIMUM_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tensorflow::multistream {

// Of the current and of the last period. Thread-safe; a metric: a value that is
// noted as a period ends may be missed.
class RecentMaximum {
 public:
  // `value` is at least 0; larger ones than kMost count as kMost. `period` is a
  // number that rises with time, such as minutes since the start.
  void Note(int64_t value, int64_t period) {
    std::atomic<uint64_t>& slot = slots_[period & 1];
    const uint64_t noted =
        Packed(period) | static_cast<uint64_t>(std::min(value, kMost));
    uint64_t old = slot.load(std::memory_order_relaxed);
    // In a later period any value is larger.
    while (old < noted &&
           !slot.compare_exchange_weak(old, noted, std::memory_order_relaxed)) {
    }
  }

  int64_t value(int64_t period) const {
    int64_t largest = 0;
    for (const int64_t recent : {period, period - 1}) {
      const uint64_t slot = slots_[recent & 1].load(std::memory_order_relaxed);
      if ((slot & ~kValue) == Packed(recent)) {
        largest = std::max(largest, static_cast<int64_t>(slot & kValue));
      }
    }
    return largest;
  }

  static constexpr int64_t kMost = (int64_t{1} << 40) - 1;

 private:
  static constexpr uint64_t kValue = kMost;
  // Periods 0 to 2^24 - 2: 31 years of minutes.
  static uint64_t Packed(int64_t period) {
    return static_cast<uint64_t>(period + 1) << 40;
  }

  std::atomic<uint64_t> slots_[2] = {};
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECENT_MAXIMUM_H_
