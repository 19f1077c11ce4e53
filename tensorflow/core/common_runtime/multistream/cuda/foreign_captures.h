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
