// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a thread wait for another thread's work of a few microseconds? It
// polls, with a pause instruction in between, and yields its core now and then:
// the operating system may have queued on this core the very thread that works.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPIN_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPIN_H_

#include <sched.h>

#include <cstdint>
#include <ctime>

namespace tensorflow::multistream {

inline int64_t SteadyNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void Pause() {
#if defined(TFMS_SEARCHED)
  sched_yield();  // one thread runs at a time there
#elif defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Calls `look` until it returns true, at most `looks` times. Returns whether
// `look` returned true.
template <class Look>
bool Spin(int looks, Look look) {
  for (; looks > 0; --looks) {
    if (look()) return true;
    Pause();
  }
  return false;
}

// Like Spin, but for `most_nanos` or a little longer, and with a yield before
// every `looks` calls.
template <class Look>
bool YieldUntil(int64_t most_nanos, int looks, Look look) {
  const int64_t end = SteadyNanos() + most_nanos;
  do {
    sched_yield();
    if (Spin(looks, look)) return true;
  } while (SteadyNanos() < end);
  return false;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_SPIN_H_
