// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where TensorFlow 2.13 has xla/stream_executor/stream_executor.h.

#ifndef THIRD_PARTY_TENSORFLOW_2_13_XLA_STREAM_EXECUTOR_STREAM_EXECUTOR_H_
#define THIRD_PARTY_TENSORFLOW_2_13_XLA_STREAM_EXECUTOR_STREAM_EXECUTOR_H_

#include "tensorflow/compiler/xla/stream_executor/stream_executor.h"  // IWYU pragma: export

#endif  // THIRD_PARTY_TENSORFLOW_2_13_XLA_STREAM_EXECUTOR_STREAM_EXECUTOR_H_
