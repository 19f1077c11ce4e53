// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do the GPUs of this process have stream groups, and may steps be captured?
// The environment asks for both when TensorFlow is loaded. A session or
// tf.cuda.captured may ask as long as there are no devices, and is refused
// after that. replaced_functions.cc and source_hooks.cc, by which TensorFlow
// calls us, and multistream.cc call this.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace multistream {

// Does what the environment asks for, the first time: before this process lists
// or makes devices. A library that TensorFlow's process loads first does so
// while it is loaded. What is a part of TensorFlow has to wait until TensorFlow
// can read files.
void LookAtEnvironmentOnce();

// For tf.cuda.captured: devices that are made from now on can capture steps.
// `has_devices`: those that functions run on have been made already.
// FailedPrecondition says why functions cannot be captured.
absl::Status CaptureFunctions(bool has_devices);

// For tests: a process whose environment had none of our variables when it
// loaded TensorFlow looks at it again, and is then what it would be had it had
// them from the start. So can processes be forked from one that has loaded
// TensorFlow, which takes seconds, whatever environment each is to have.
// FailedPrecondition, and nothing has changed, if the process has made devices
// or had variables of ours already. A value that is not allowed is no error
// here, but of CheckEnvironment (multistream.h), as where it is there from the
// start.
absl::Status LookAtEnvironmentAgain();

// Whether GPU devices that are made from now on may have groups.
bool GroupsAreRegistered();

// In the place of DeviceFactory::AddDevices, which is `stock`: a session begins
// with its devices.
absl::Status AddDevices(const SessionOptions& options,
                        absl::FunctionRef<absl::Status()> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_
