// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which options does this process have? The environment's, with additions by
// sessions. Only functions that TensorFlow or a program calls without options
// ask: hooks/, serving/, the device factories, the programs' interface. They
// pass the options to all other code; the build refuses this header elsewhere.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow::multistream {

// The options of the environment, which is read once, with the additions of
// RequestNodeLevel and RequestCapture.
const absl::StatusOr<Options>& ProcessOptions();

// Whether the process has several groups on some GPU, or emulated GPUs.
bool IsEnabled();
// Whether the process's steps may be captured.
bool MayCapture();

// For a session whose ConfigProto asks for node level on `groups` groups: gives
// each GPU at least as many. InvalidArgument if the environment contradicts.
// Not thread-safe. Once the groups are made, `groups` has to be 1.
absl::Status RequestNodeLevel(int groups);
// For functions and sessions that ask for captured steps: acts as if the
// environment had TF_MULTI_STREAM_CAPTURE=marked, so that devices made from now
// on can capture. FailedPrecondition if the environment forbids capture;
// CanRequestCapture only checks that.
absl::Status RequestCapture();
absl::Status CanRequestCapture();
// Undoes a request when groups could not be made. `before`: the result of
// ProcessOptions before the request.
void RestoreOptions(const absl::StatusOr<Options>& before);

// For tests: reads the environment again. FailedPrecondition if the environment
// had any of our variables when it was read last, or if a request has changed
// the options since. Call before other threads use the options.
absl::Status ReadEnvironmentAgain();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_PROCESS_OPTIONS_H_
