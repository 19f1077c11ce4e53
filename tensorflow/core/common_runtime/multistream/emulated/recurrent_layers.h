// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Keras uses cuDNN's ops for LSTM and GRU layers and their gradients wherever
// it sees a GPU, and TensorFlow has no kernels of the ops for CPUs. These are
// for emulated GPUs: one layer, in one direction.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_

namespace tensorflow::multistream {

// Registers the kernels for CPUs. Only the first call has an effect.
void RegisterRecurrentLayers();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_RECURRENT_LAYERS_H_
