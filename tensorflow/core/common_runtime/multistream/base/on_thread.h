// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does the calling code of this thread tell the code that it calls, where
// no argument can say it?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ON_THREAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ON_THREAD_H_

#include <utility>

namespace tensorflow::multistream {

// For as long as it lives, this thread's Get() returns `value`. Without an
// object of the `Kind`, Get() returns T().
template <class Kind, typename T>
class OnThread {
 public:
  explicit OnThread(T value) : before_(Exchange(value)) {}
  ~OnThread() { Value() = before_; }
  OnThread(const OnThread&) = delete;
  OnThread& operator=(const OnThread&) = delete;

  static T Get() { return Value(); }
  // Sets the value without an object, for callers whose scopes are not C++'s.
  // Returns the value before.
  static T Exchange(T value) { return std::exchange(Value(), value); }

 private:
  static T& Value() {
    thread_local T value{};
    return value;
  }

  const T before_;
};

// Does the thread that begins a step block until the step has ended? Then the
// end of the step only wakes that thread, and so may run in any thread, even in
// one that must not block. The caller makes a WaitingCaller, executors ask.
class WaitingCaller : public OnThread<WaitingCaller, bool> {
 public:
  WaitingCaller() : OnThread(true) {}
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_ON_THREAD_H_
