// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Random pauses that vary how the threads of a test interleave, and how long a
// test waits for them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_PAUSES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_PAUSES_H_

#include <random>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensorflow::multistream {

// A test whose wait takes longer than this has failed, on any machine.
inline constexpr absl::Duration kLongEnough = absl::Seconds(10);

// Pauses for 0 to 3 ms: up to three times as long as a polling thread polls.
inline void PauseAtRandom(std::mt19937* random) {
  const absl::Time end = absl::Now() + absl::Microseconds((*random)() % 3000);
  // Every other pause only spins, because a sleeping thread wakes up late.
  if ((*random)() % 2 == 0) absl::SleepFor(end - absl::Now());
  while (absl::Now() < end) {
  }
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_PAUSES_H_
