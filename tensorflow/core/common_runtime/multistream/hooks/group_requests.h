// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do the GPUs of this process have stream groups, and may steps be captured?
// The environment asks for both when TensorFlow is loaded. A session or
// tf.cuda.captured may ask until devices exist; later requests are refused.
// Callers are TensorFlow, through replaced_functions.cc or source_hooks.cc, and
// multistream.cc.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {

// Applies the environment's requests, once. Must be called before this process
// lists or makes devices. A separate runtime library calls it while it is
// loaded. A runtime built into TensorFlow calls it later, when TensorFlow can
// read files.
void LookAtEnvironmentOnce();

// For tf.cuda.captured: devices that are made from now on can capture steps.
// `has_devices`: the devices on which functions run exist already.
// FailedPrecondition says why functions cannot be captured.
absl::Status CaptureFunctions(bool has_devices);

// For tests: reads the environment again in a process that loaded TensorFlow
// with none of our variables set, as if they had been set from the start.
// Loading TensorFlow takes seconds; so a test loads it once, and forks a
// process for each environment. FailedPrecondition, with nothing changed, if
// the process has made devices or had any of our variables. An invalid value is
// reported not here but by CheckEnvironment (multistream.h), as in any process.
absl::Status LookAtEnvironmentAgain();

// Whether GPU devices that are made from now on may have groups.
bool GroupsAreRegistered();

// Replaces EagerContext::RunEagerOpAsFunction, which is `stock`.
//
// Stock TensorFlow may run an eager op as a function of one op. All one-op
// functions share one rendezvous, in which the calls of two threads can take
// each other's inputs, and each call would be a step on some group. With
// groups, an eager op is therefore a plain kernel on the visible device, on the
// leader's stream.
inline bool RunsEagerOpsAsFunctions(absl::FunctionRef<bool()> stock) {
  return !GroupsAreRegistered() && stock();
}

// Replaces DeviceFactory::AddDevices, which is `stock`: making devices is how a
// session begins.
absl::Status AddDevices(const SessionOptions& options,
                        absl::FunctionRef<absl::Status()> stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_GROUP_REQUESTS_H_
