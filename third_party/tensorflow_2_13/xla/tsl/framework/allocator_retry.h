// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where TensorFlow 2.13 has xla/tsl/framework/allocator_retry.h.

#ifndef THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_FRAMEWORK_ALLOCATOR_RETRY_H_
#define THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_FRAMEWORK_ALLOCATOR_RETRY_H_

#include "tensorflow/tsl/framework/allocator_retry.h"  // IWYU pragma: export

#endif  // THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_FRAMEWORK_ALLOCATOR_RETRY_H_
