// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which nodes without a device go to an emulated GPU? The nodes for which
// TensorFlow has a GPU kernel, as on a machine with a GPU. (To the placer an
// emulated GPU is a CPU, and among CPUs it prefers CPU:0.)

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_

namespace tensorflow {
namespace multistream {

// Registers the graph pass that places them. Called once, by hooks/.
void PlaceOnEmulatedGpus();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_PLACEMENT_H_
