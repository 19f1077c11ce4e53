// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Bytes as tests write them.

#ifndef EXAMPLES_SERVING_FRONT_HEX_FIXTURE_H_
#define EXAMPLES_SERVING_FRONT_HEX_FIXTURE_H_

#include <string>

namespace front {

inline std::string Hex(const std::string& bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) {
    for (const int digit : {byte >> 4, byte & 15}) {
      hex += "0123456789abcdef"[digit];
    }
  }
  return hex;
}

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_HEX_FIXTURE_H_
