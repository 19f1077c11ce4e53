// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Must not build: a room does not see those above it (scripts/test.sh).

#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
