// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do TensorFlow's libraries of some releases lack of what their headers
// declare? Defines it, for all that links them.

#include "absl/base/config.h"
#include "absl/log/internal/log_message.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"

TFMS_MISSING_SYMBOLS
