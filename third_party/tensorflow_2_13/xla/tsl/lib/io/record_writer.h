// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where TensorFlow 2.13 has xla/tsl/lib/io/record_writer.h.

#ifndef THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_LIB_IO_RECORD_WRITER_H_
#define THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_LIB_IO_RECORD_WRITER_H_

#include "tensorflow/tsl/lib/io/record_writer.h"  // IWYU pragma: export

#endif  // THIRD_PARTY_TENSORFLOW_2_13_XLA_TSL_LIB_IO_RECORD_WRITER_H_
