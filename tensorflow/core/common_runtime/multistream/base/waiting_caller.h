// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does a thread that begins a step wait for it, and do nothing else with its
// end? Who makes such a call says so, and the executors of its graphs ask: then
// the step may end in any thread, even in one that others wait for.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_

namespace tensorflow {
namespace multistream {

// While there is one, its thread waits for what it calls.
class WaitingCaller {
 public:
  WaitingCaller();
  ~WaitingCaller();
  WaitingCaller(const WaitingCaller&) = delete;
  WaitingCaller& operator=(const WaitingCaller&) = delete;

  static bool OfThisThread();

 private:
  const bool before_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_WAITING_CALLER_H_
