// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On emulated GPUs, which graph nodes go to the GPU that nobody placed? Those
// for which TensorFlow has a GPU kernel, as on a machine with a GPU. (An
// emulated GPU is a CPU to the placer, which prefers CPU:0 among equals.)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_

namespace tensorflow {
namespace multistream {

// Registers the graph pass that does so. Called once, by attach.
void PlaceOnEmulatedGpus();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_
