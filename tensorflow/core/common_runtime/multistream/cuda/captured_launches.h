// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What becomes of a launch that fails while its step is captured? Most kernels
// of TensorFlow end the process where they cannot be launched, which is right
// for a step that runs. But a capture may end at any time (capture_gate.h), all
// its launches fail from then on, and it is only a recording that is lost. So
// on a thread that captures, a launch that fails is noted, and its caller is
// told that it has succeeded: nothing of a captured step runs, whatever was
// launched, and a recording with a launch that is noted is dropped.
//
// That goes for the launches, copies and events that TensorFlow's libraries
// call by name. cuBLAS, cuDNN and XLA return errors, which an op returns, too.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// While it lives, this thread captures, and no launch of it fails. One at a
// time on a thread.
class CapturedLaunches {
 public:
  CapturedLaunches();
  ~CapturedLaunches();
  CapturedLaunches(const CapturedLaunches&) = delete;
  CapturedLaunches& operator=(const CapturedLaunches&) = delete;

  // Of the first launch that has failed, Internal; or OK.
  const absl::Status& failure() const { return failure_; }

  // `error`: CUDA's.
  void Note(const char* function, int error);

 private:
  absl::Status failure_;
};

// From now on launches of the loaded library whose file name begins with
// `library` are so. It calls functions of CUDA's that the library `cuda` has.
// Returns how many functions that launch something it calls. Errors are those
// of LoadedLibrary. Idempotent.
absl::StatusOr<int> NoteFailedLaunchesOf(const std::string& library,
                                         const std::string& cuda);

// The same for TensorFlow's libraries. Logs what it cannot do.
void NoteFailedLaunchesOfTensorFlow();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CAPTURED_LAUNCHES_H_
