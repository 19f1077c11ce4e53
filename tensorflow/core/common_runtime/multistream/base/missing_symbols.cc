// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Defines symbols that some releases' headers declare and their libraries lack,
// for all programs that link those libraries.

#include "absl/base/config.h"
#include "absl/log/internal/log_message.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"

TFMS_MISSING_SYMBOLS
