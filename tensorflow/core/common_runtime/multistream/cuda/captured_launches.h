// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What happens to a launch that fails while its step is captured? Most kernels
// of TensorFlow end the process if their launch fails. But a capture may end at
// any time (capture_gate.h); from then on all its launches fail, and only a
// recording is lost. So on a thread that captures, a failed launch is noted,
// and its caller is told that it succeeded. That is safe: nothing of a captured
// step runs, and a recording with a noted failure is dropped.
//
// Launches may also be left out, where one kernel stands for several ops.
//
// This covers the launches, copies and events that TensorFlow's libraries call
// by name. cuBLAS, cuDNN and XLA return their errors, and so do ops that call
// them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensorflow::multistream {

// While it lives, this thread's launches appear to succeed. At most one at a
// time on a thread.
class CapturedLaunches {
 public:
  CapturedLaunches();
  ~CapturedLaunches();
  CapturedLaunches(const CapturedLaunches&) = delete;
  CapturedLaunches& operator=(const CapturedLaunches&) = delete;

  // Internal for the first failed launch; OK if none failed.
  const absl::Status& failure() const { return failure_; }

  // `error`: CUDA's error code.
  void Note(const char* function, int error);

 private:
  absl::Status failure_;
};

// While it lives, this thread's launches appear to succeed, and launch nothing.
// At most one at a time on a thread.
class SkippedLaunches {
 public:
  SkippedLaunches();
  ~SkippedLaunches();
  SkippedLaunches(const SkippedLaunches&) = delete;
  SkippedLaunches& operator=(const SkippedLaunches&) = delete;
};

// From now on failed launches of the loaded library whose file name begins with
// `library` are noted. `cuda` is the library that exports the CUDA functions.
// Returns how many launching functions `library` calls. Errors are
// LoadedLibrary's. Idempotent.
absl::StatusOr<int> NoteFailedLaunchesOf(const std::string& library,
                                         const std::string& cuda);

// The same for TensorFlow's libraries. Logs failures.
void NoteFailedLaunchesOfTensorFlow();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_
