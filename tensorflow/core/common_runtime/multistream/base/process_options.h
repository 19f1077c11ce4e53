// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which options has this process? Those of its environment, with what sessions
// add. Only what TensorFlow calls without arguments asks: attach, the device
// factories of cuda and emulated, and the programs' interface. They pass the
// options on to all else, and the build refuses this header elsewhere.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow {
namespace multistream {

// The options of this process: those of its environment, which are read once,
// with what RequestNodeLevel and RequestCapture have added.
const absl::StatusOr<Options>& ProcessOptions();

// Whether the process has several groups on some GPU, or emulated GPUs.
bool IsEnabled();
// Whether its steps may be captured.
bool MayCapture();

// For a session whose ConfigProto wants `groups` groups for its nodes: each GPU
// has at least as many. InvalidArgument if the environment contradicts. To be
// called by one thread at a time; once the groups are made, with 1.
absl::Status RequestNodeLevel(int groups);
// For functions and sessions that ask for captured steps, as if the environment
// had TF_MULTI_STREAM_CAPTURE=marked: devices that are made from now on can
// capture. FailedPrecondition if the environment says that none are captured,
// which CanRequestCapture asks, too.
absl::Status RequestCapture();
absl::Status CanRequestCapture();
// If no groups could be made: `before` is what ProcessOptions returned before
// the request.
void RestoreOptions(const absl::StatusOr<Options>& before);

// For tests: the options are those of the environment as it is now.
// FailedPrecondition unless the process has the options that it began with, of
// an environment with none of our variables. To be called by one thread, before
// others use the options.
absl::Status ReadEnvironmentAgain();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_
