/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Faults that tests inject to see that the sanitizer finds them. Nothing else
// uses this.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TEST_FAULTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TEST_FAULTS_H_

#include <atomic>

namespace tensorflow {
namespace multistream {

enum class TestFault {
  kDropWait,         // a stream is not told to wait for another one
  kDropHold,         // an op does not hold the memory of another group
  kReleaseTooEarly,  // a group gets held memory back while it is still used
};
inline constexpr int kTestFaults = 3;

// How often each fault will still happen.
inline std::atomic<int>* PendingTestFaults() {
  static std::atomic<int> pending[kTestFaults] = {};
  return pending;
}

inline void InjectTestFault(TestFault fault, int times) {
  PendingTestFaults()[static_cast<int>(fault)].store(times);
}

// True if the fault is to happen now.
inline bool TakeTestFault(TestFault fault) {
  std::atomic<int>& pending = PendingTestFaults()[static_cast<int>(fault)];
  if (pending.load(std::memory_order_relaxed) <= 0) return false;
  return pending.fetch_sub(1) > 0;
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TEST_FAULTS_H_
