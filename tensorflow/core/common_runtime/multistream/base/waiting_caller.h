// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does the thread that begins a step block until the step has ended? Then the
// end of the step only wakes that thread, and so may run in any thread, even in
// one that must not block. The caller makes a WaitingCaller, executors ask.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_

#include <utility>

namespace tensorflow {
namespace multistream {

// For as long as it lives, the calling thread blocks in each call of a step.
class WaitingCaller {
 public:
  WaitingCaller() : before_(std::exchange(*Waits(), true)) {}
  ~WaitingCaller() { *Waits() = before_; }
  WaitingCaller(const WaitingCaller&) = delete;
  WaitingCaller& operator=(const WaitingCaller&) = delete;

  static bool OfThisThread() { return *Waits(); }

 private:
  static bool* Waits() {
    thread_local bool waits = false;
    return &waits;
  }

  const bool before_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
