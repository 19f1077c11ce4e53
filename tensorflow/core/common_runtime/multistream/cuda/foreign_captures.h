// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What may TensorFlow's threads do while other code of the process, such as
// PyTorch, captures a stream? In CUDA's default capture mode, the global one,
// "potentially unsafe" calls of every other thread fail: event queries,
// allocating and freeing memory, loading modules. The failing call ends the
// other capture, too, and TensorFlow ends the process if an event query fails.
// TensorFlow's calls have nothing to do with the other capture. So they are
// made in the thread-local mode, which ignores other threads' captures.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow::multistream {

// From now on `library` makes its potentially unsafe calls in the thread-local
// mode. Arguments, result and errors are those of ReplaceCalls
// (loaded_library.h); NotFound if `cuda` cannot change a thread's capture mode.
absl::StatusOr<int> IgnoreForeignCapturesIn(const std::string& library,
                                            const std::string& cuda);

// The same for TensorFlow's libraries, and ours. Logs failures.
void IgnoreForeignCapturesInTensorFlow();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_
