// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Faults that tests inject to check that the sanitizer finds them. They need
// TF_MULTI_STREAM_TEST_FAULTS, set when the process starts.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_

#include <atomic>

namespace tensorflow::multistream {

enum class TestFault {
  kDropWait,         // a stream is not told to wait for another one
  kDropHold,         // an op does not hold the memory of another group
  kReleaseTooEarly,  // a group gets held memory back that is still used
  kSpoilReplay,      // a verified result of a captured step has a wrong bit
  kPassGate,         // a wait for the whole GPU breaks other threads' captures
};
inline constexpr int kTestFaults = 5;

// Constant once the library has read the environment.
inline std::atomic<bool> test_faults_allowed{false};

// How many times each fault will still happen.
inline std::atomic<int> pending_test_faults[kTestFaults] = {};

// Returns false and injects nothing if the process does not allow faults.
inline bool InjectTestFault(TestFault fault, int times) {
  if (!test_faults_allowed.load(std::memory_order_relaxed)) return false;
  pending_test_faults[static_cast<int>(fault)].store(times);
  return true;
}

// Returns true if the fault has to happen now.
inline bool TakeTestFault(TestFault fault) {
  if (!test_faults_allowed.load(std::memory_order_relaxed)) return false;
  std::atomic<int>& pending = pending_test_faults[static_cast<int>(fault)];
  if (pending.load(std::memory_order_relaxed) <= 0) return false;
  return pending.fetch_sub(1) > 0;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_TEST_FAULTS_H_
