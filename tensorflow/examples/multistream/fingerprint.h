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

// Are two sequences of bytes the same? A 64-bit fingerprint (FNV-1a) that does
// not depend on the machine, the library or the process.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_FINGERPRINT_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_FINGERPRINT_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tensorflow {
namespace multistream {

inline constexpr uint64_t kNoBytes = 0xcbf29ce484222325;

// Goes on from `fingerprint`, the one of the bytes that come before.
inline uint64_t Fingerprint(absl::string_view bytes,
                            uint64_t fingerprint = kNoBytes) {
  for (const unsigned char byte : bytes) {
    fingerprint = (fingerprint ^ byte) * 0x100000001b3;
  }
  return fingerprint;
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_FINGERPRINT_H_
