// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Faults that tests inject to see that the sanitizer finds them. A process has
// them only if TF_MULTI_STREAM_TEST_FAULTS asked for them when it started.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_

#include <atomic>

namespace tensorflow {
namespace multistream {

enum class TestFault {
  kDropWait,         // a stream is not told to wait for another one
  kDropHold,         // an op does not hold the memory of another group
  kReleaseTooEarly,  // a group gets held memory back while it is still used
  kSpoilReplay,      // a verified result of a captured step has a wrong bit
  kPassGate,         // a wait for all of the GPU ends other threads' captures
};
inline constexpr int kTestFaults = 5;

// Does not change once the library has looked at the environment.
inline std::atomic<bool> test_faults_allowed{false};

// How often each fault will still happen.
inline std::atomic<int> pending_test_faults[kTestFaults] = {};

// False, and nothing will happen, if the process may have no faults.
inline bool InjectTestFault(TestFault fault, int times) {
  if (!test_faults_allowed.load(std::memory_order_relaxed)) return false;
  pending_test_faults[static_cast<int>(fault)].store(times);
  return true;
}

// True if the fault is to happen now.
inline bool TakeTestFault(TestFault fault) {
  if (!test_faults_allowed.load(std::memory_order_relaxed)) return false;
  std::atomic<int>& pending = pending_test_faults[static_cast<int>(fault)];
  if (pending.load(std::memory_order_relaxed) <= 0) return false;
  return pending.fetch_sub(1) > 0;
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_
