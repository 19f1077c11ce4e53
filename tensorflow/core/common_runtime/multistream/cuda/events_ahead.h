// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a thread get a CUDA event without waiting for the GPU?
//
// cuEventCreate writes a lock of the context that launches and copies read
// (docs/driver-locks.md). A driver call that waits for the GPU reads that lock
// until the kernels before the call have ended. While such calls overlap,
// cuEventCreate waits for the kernels of a neighbour, too. TensorFlow's
// EventMgr makes an event whenever more callbacks wait for a stream than ever
// before, and the thread that adds the callback holds the group's launch_mu:
// until the event is made, no captured step of the group is launched.
//
// So a thread of ours makes events before they are needed:
//
//   our thread    cuEventCreate   cuEventCreate ...     may wait
//                       |               |
//   kept          ---- e e e e e e e e e e ----
//                                     |
//   TensorFlow                        e                 does not wait
//
// Where events are taken faster than new ones are made, until none is kept, a
// thread makes its event by itself.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_EVENTS_AHEAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_EVENTS_AHEAD_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {

// The events kept for a context. Lives as long as the process, as its thread
// does.
class EventsAhead {
 public:
  using Make = std::function<CUresult(CUevent*)>;

  // Makes `count` events, and has a thread make one for each that is taken. At
  // the first failure of `make` the making ends.
  static EventsAhead* Begin(int count, Make make);

  // Gives the caller an event; false if there is none.
  bool Take(CUevent* event);

 private:
  EventsAhead(int count, Make make) : count_(count), make_(std::move(make)) {}

  bool IsShort() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return static_cast<int>(events_.size()) < count_;
  }
  // Makes an event; false if it failed.
  bool Add();

  const int count_;
  const Make make_;
  absl::Mutex mu_;
  std::vector<CUevent> events_ ABSL_GUARDED_BY(mu_);
};

// From now on TensorFlow's events of the current CUDA context, without timing,
// are taken from those made ahead. Further calls for the context change
// nothing. Two threads must not call it at the same time. Logs failures: then
// events are made when they are needed.
void MakeEventsAhead();

// The two halves, for tests. The first redirects `library`'s calls of the
// function that the library `cuda` exports; returns whether there are any;
// errors are ReplaceCalls's.
absl::StatusOr<bool> RedirectEventCreation(const std::string& library,
                                           const std::string& cuda);
absl::Status KeepEventsOfCurrentContext();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_EVENTS_AHEAD_H_
