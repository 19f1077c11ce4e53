// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which values from the host exist before a step's ops on a GPU run? A captured
// step starts once all its values have arrived, so no value may depend on the
// step's own results. A graph pass of attach marks early values once a graph
// has been divided among its devices; ClassifyForCapture (capturable.h) reads
// the mark.
//
//   host   feed --> a --> send ......... early: nothing before it receives
//                             :
//   GPU                    receive --> b --> send ....
//                                                    :
//   host                                          receive --> c --> send
//                                                                  not early

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EARLY_VALUES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EARLY_VALUES_H_

#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Marks the receives of early values. `parts` are all graphs that run in one
// step, each on its device.
void MarkEarlyValues(absl::Span<Graph* const> parts);

// Whether `node` receives a value that is marked as early.
bool IsEarlyValue(const Node& node);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EARLY_VALUES_H_
