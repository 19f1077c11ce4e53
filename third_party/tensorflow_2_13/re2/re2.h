// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where TensorFlow 2.13 has re2/re2.h.

#ifndef THIRD_PARTY_TENSORFLOW_2_13_RE2_RE2_H_
#define THIRD_PARTY_TENSORFLOW_2_13_RE2_RE2_H_

#include "external/com_googlesource_code_re2/re2/re2.h"  // IWYU pragma: export

#endif  // THIRD_PARTY_TENSORFLOW_2_13_RE2_RE2_H_
