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

// Whether the times that a program measures mean anything.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_EMULATED_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_EMULATED_H_

#include <cstdlib>

#include "tensorflow/core/common_runtime/multistream/multistream.h"

namespace tensorflow {
namespace multistream {

// Whether this process's GPUs are emulated on the CPU.
inline bool GpusAreEmulated() {
  // The runtime has refused what is no number.
  const char* count = std::getenv("TF_MULTI_STREAM_EMULATED_GPUS");
  return MultiStreamIsEnabled() && count != nullptr && std::atoi(count) > 0;
}

// What a report of such a process says.
inline constexpr char kTimesMeanNothing[] =
    "the GPU is emulated on the CPU: results count, times mean nothing\n";

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_EMULATED_H_
