// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are captures kept apart from the calls that would end them? While a
// thread captures a stream, a cuCtxSynchronize (and so cudaDeviceSynchronize)
// of any other thread fails and ends the capture. No other CUDA call does so in
// the relaxed capture mode (docs/captured-steps-reference.md lists the calls
// that were tried). So captures and waits for the whole GPU are two groups of a
// group mutual exclusion: any number of one side may be inside the gate, never
// both sides.
//
// Which thread waits for which, and how long at most:
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
//   waits for the GPU,   itself                              never: it gets
//   and captures                                             CUDA's error
//
// The bounds are there because the gate cannot know which locks the threads
// hold:
//   - a waiting thread may hold a lock that a capture needs to finish: XLA,
//     when it measures kernels, waits for the GPU while it blocks its own
//     steps. When the wait goes on anyway, it ends the capture, and gets CUDA's
//     error;
//   - the GPU may be waiting for the thread that wants to capture, as for a
//     host callback that needs a lock of this thread.

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

namespace tensorflow::multistream {

// Fair: a thread does not overtake an earlier one of the other side.
class CaptureGate {
 public:
  enum Side { kCaptures, kWaits };

  // A capture takes milliseconds, and blocks the variables that its step
  // changes, so it gives up early. A wait takes as long as the GPU's work.
  static constexpr absl::Duration kLongestOfCapture = absl::Milliseconds(250);
  static constexpr absl::Duration kLongestOfWait = absl::Seconds(10);
  static constexpr absl::Duration kLongestStill = absl::Milliseconds(500);

  explicit CaptureGate(absl::Duration longest_still = kLongestStill)
      : longest_still_(longest_still) {}
  virtual ~CaptureGate() = default;

  // False, and the thread is not inside, if it has waited for `longest`, or, on
  // the side kWaits, if no capture made progress for `longest_still`.
  bool Enter(Side side, absl::Duration longest);
  void Leave(Side side);

  // How many threads are blocked in Enter.
  int64_t waiting(Side side);

  // Called when a capture has launched an op.
  void NoteProgress() { progress_.fetch_add(1, std::memory_order_relaxed); }
  // Ops launched by captures so far. Virtual for tests.
  virtual int64_t progress() const {
    return progress_.load(std::memory_order_relaxed);
  }

  // Calls `wait` inside the gate. If entering fails (see Enter), calls `wait`
  // outside; if a capture made `wait` return false, tries once more in the same
  // way.
  void Wait(absl::FunctionRef<bool()> wait,
            absl::Duration longest = kLongestOfWait);
  // Calls `wait` without entering, even during captures. Returns its result.
  bool PassBy(absl::FunctionRef<bool()> wait);
  // How many waits called PassBy, and how many of them have returned.
  int64_t passed() const { return passed_.load(); }
  int64_t passed_and_ended() const { return passed_and_ended_.load(); }

  // Whether the driver's waits go through the gate (driver_waits.h).
  void set_guards(bool guards) { guards_.store(guards); }
  bool guards() const { return guards_.load(); }

 private:
  // A thread blocked in Enter.
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
  std::vector<Request*> waiting_ ABSL_GUARDED_BY(mu_);  // FIFO
  std::atomic<int64_t> progress_{0};
  std::atomic<bool> guards_{false};
  std::atomic<int64_t> passed_{0};
  std::atomic<int64_t> passed_and_ended_{0};
};

// The one gate of the process, for all GPUs.
CaptureGate* ProcessCaptureGate();

// Holds the gate for a capture of this thread: constructed before the capture
// begins, destroyed after it has ended.
class GatedCapture {
 public:
  explicit GatedCapture(CaptureGate* gate, absl::Duration longest =
                                               CaptureGate::kLongestOfCapture);
  ~GatedCapture();
  GatedCapture(const GatedCapture&) = delete;
  GatedCapture& operator=(const GatedCapture&) = delete;

  // DeadlineExceeded if the gate was not entered: do not capture now.
  absl::Status status() const;
  void NoteProgress() const { gate_->NoteProgress(); }
  // Why a capture was invalidated: Internal if another thread may have done it,
  // so that a retry can succeed; FailedPrecondition if an op of this thread
  // did.
  absl::Status WhyEnded() const;

  // Whether this thread is capturing.
  static bool IsOnThisThread();

 private:
  CaptureGate* const gate_;
  const bool entered_;
  const int64_t passed_before_;  // passed_and_ended() at the start
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURE_GATE_H_
