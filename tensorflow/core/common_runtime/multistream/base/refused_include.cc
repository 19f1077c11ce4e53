// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Must not build: base must not include a higher layer (scripts/test.sh).

#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
