// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What may threads of TensorFlow's do while other code of the process captures
// a stream? CUDA's default mode of capture, the global one, has "potentially
// unsafe" calls of every other thread fail: queries of events, memory that is
// allocated and freed, modules that are loaded. Such a call ends the other
// capture, too, and TensorFlow ends the process if an event cannot be asked
// about. PyTorch, for one, captures in that mode.
//
// These calls have nothing to do with the other capture. So they are made in
// the mode in which other threads' captures do not concern a thread.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_

#include <string>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

// From now on such calls of `library` are so. The rest is as ReplaceCalls of
// calls_by_name.h has it; NotFound if `cuda` cannot change a thread's mode.
absl::StatusOr<int> IgnoreForeignCapturesIn(const std::string& library,
                                            const std::string& cuda);

// The same for TensorFlow's libraries, and ours. Logs what it cannot do.
void IgnoreForeignCapturesInTensorFlow();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FOREIGN_CAPTURES_H_
