// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_

#include <atomic>

namespace tensorflow::multistream {

// Atomic maximum: makes `highest` at least `value`.
template <typename T>
void RaiseTo(T value, std::atomic<T>* highest) {
  T seen = highest->load(std::memory_order_relaxed);
  while (seen < value &&
         !highest->compare_exchange_weak(seen, value, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
  }
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_
