// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which settings of the process do kernels read at each launch? A recording
// fixes the settings of the time when it was made, so they are part of its key.
// Every other setting that kernels read (docs/captured-steps-reference.md has a
// table) is fixed when the process first reads it, or when a kernel is made.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_KERNEL_SETTINGS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_KERNEL_SETTINGS_H_

#include "tensorflow/core/platform/tensor_float_32_utils.h"
#include "tensorflow/core/util/determinism.h"

namespace tensorflow {
namespace multistream {

struct KernelSettings {
  // The current settings. Takes nanoseconds.
  static KernelSettings Now() {
    return {tensor_float_32_execution_enabled(), OpDeterminismRequired()};
  }

  bool operator==(const KernelSettings& other) const {
    return tensor_float_32 == other.tensor_float_32 &&
           deterministic == other.deterministic;
  }
  bool operator!=(const KernelSettings& other) const {
    return !(*this == other);
  }

  // tf.config.experimental.enable_tensor_float_32_execution
  bool tensor_float_32 = false;
  // tf.config.experimental.enable_op_determinism
  bool deterministic = false;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_KERNEL_SETTINGS_H_
