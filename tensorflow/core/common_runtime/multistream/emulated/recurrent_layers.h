// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Keras uses cuDNN's op for LSTM and GRU layers wherever it sees a GPU, and
// TensorFlow has no kernel of the op for CPUs. This is one for emulated GPUs:
// one layer, in one direction, forward.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_

namespace tensorflow::multistream {

// Registers the kernel for CPUs. Only the first call has an effect.
void RegisterRecurrentLayers();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_
