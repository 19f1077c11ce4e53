/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// What can change after TensorFlow has been loaded?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_ATTACH_EXECUTOR_HOOK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_ATTACH_EXECUTOR_HOOK_H_

#include "absl/status/status.h"

namespace tensorflow {
namespace multistream {

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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_ATTACH_EXECUTOR_HOOK_H_
