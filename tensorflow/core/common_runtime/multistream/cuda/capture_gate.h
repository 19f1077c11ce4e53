// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are captures kept apart from what ends them? While a thread captures a
// stream, a call of any other thread that waits for all of the GPU
// (cuCtxSynchronize, and so cudaDeviceSynchronize) fails, and ends the capture.
// It is the only call of CUDA's that does so in the relaxed mode of capture
// (docs/captured-steps-reference.md has what was tried). So captures and such
// waits go through a gate: any number of one side may be inside, never both
// sides.
//
// Who waits for whom, and for how long at most:
//
//   a thread that        finds inside   or an earlier one    waits at most
//                                       waiting
//   begins a capture     a wait         a wait               kLongestOfCapture,
//                                                            then does without
//   waits for the GPU    a capture      a capture            kLongestOfWait, or
//                                                            kLongestStill if
//                                                            no capture gets
//                                                            on, then waits
//                                                            anyway
//   waits for the GPU,   itself                              never: CUDA's
//   and captures                                             error is its own
//
// The bounds are there because the gate cannot know which locks the threads
// hold:
//   - a wait may be made under a lock that a capture needs to come to its end,
//     as XLA waits for the GPU, to measure kernels, while it keeps its own
//     steps from running. Once the wait goes on anyway, it ends the capture,
//     and gets CUDA's error;
//   - the GPU may be waiting for the thread that wants to capture, as for a
//     host callback under a lock of that thread.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURE_GATE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURE_GATE_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tensorflow {
namespace multistream {

// Fair: a thread does not overtake an earlier one of the other side.
class CaptureGate {
 public:
  enum Side { kCaptures, kWaits };

  // A capture takes milliseconds, and holds up the variables that its step
  // changes; a wait takes as long as the GPU's work.
  static constexpr absl::Duration kLongestOfCapture = absl::Milliseconds(250);
  static constexpr absl::Duration kLongestOfWait = absl::Seconds(10);
  static constexpr absl::Duration kLongestStill = absl::Milliseconds(500);

  explicit CaptureGate(absl::Duration longest_still = kLongestStill)
      : longest_still_(longest_still) {}
  virtual ~CaptureGate() = default;

  // False if the thread has waited for `longest`, or is on the side kWaits and
  // no capture has got on for a while: it is not inside.
  bool Enter(Side side, absl::Duration longest);
  void Leave(Side side);

  // Threads that wait in Enter.
  int64_t waiting(Side side);

  // A capture has launched an op. How many have.
  void NoteProgress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  // Virtual for tests.
  virtual int64_t progress() const {
    return progress_.load(std::memory_order_relaxed);
  }

  // Calls `wait`, inside unless that takes longer than `longest`; then whatever
  // is inside, and if it returns false, as a capture was in its way, once more
  // in the same way.
  void Wait(absl::FunctionRef<bool()> wait,
            absl::Duration longest = kLongestOfWait);
  // Calls `wait`, whatever is inside. Returns what it does.
  bool PassBy(absl::FunctionRef<bool()> wait);
  // How many waits have passed by, and how many of them have come to their end.
  int64_t passed() const { return passed_.load(); }
  int64_t passed_and_ended() const { return passed_and_ended_.load(); }

  // Whether the driver's waits come to the gate (driver_waits.h).
  void set_guards(bool guards) { guards_.store(guards); }
  bool guards() const { return guards_.load(); }

 private:
  // A thread that waits.
  struct Request {
    const Side side;
    bool admitted = false;
    absl::CondVar changed;
  };

  bool MayEnter(Side side, const Request* request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Admit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration longest_still_;
  absl::Mutex mu_;
  int inside_[2] ABSL_GUARDED_BY(mu_) = {0, 0};
  std::vector<Request*> waiting_ ABSL_GUARDED_BY(mu_);  // as they came
  std::atomic<int64_t> progress_{0};
  std::atomic<bool> guards_{false};
  std::atomic<int64_t> passed_{0};
  std::atomic<int64_t> passed_and_ended_{0};
};

// The process's, for all of its GPUs.
CaptureGate* ProcessCaptureGate();

// A capture of this thread, from before it begins until it has ended.
class GatedCapture {
 public:
  explicit GatedCapture(CaptureGate* gate, absl::Duration longest =
                                               CaptureGate::kLongestOfCapture);
  ~GatedCapture();
  GatedCapture(const GatedCapture&) = delete;
  GatedCapture& operator=(const GatedCapture&) = delete;

  // DeadlineExceeded if there is to be no capture now.
  absl::Status status() const;
  void NoteProgress() const { gate_->NoteProgress(); }
  // Of a capture that was ended before its end: Internal if another thread may
  // have done it, so that it is to be tried again; FailedPrecondition if it was
  // an op of this thread.
  absl::Status WhyEnded() const;

  // Whether this thread is in one.
  static bool IsOnThisThread();

 private:
  CaptureGate* const gate_;
  const bool entered_;
  const int64_t passed_before_;  // and ended
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURE_GATE_H_
