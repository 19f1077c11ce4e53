/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

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
