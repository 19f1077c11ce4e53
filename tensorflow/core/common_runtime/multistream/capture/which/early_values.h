// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which values from the host are there before a step's ops on a GPU have run? A
// captured step begins when it has all of them, so none may wait for what the
// step itself makes. A pass of attach marks them when a graph has been divided
// among its devices; ClassifyForCapture (capturable.h) asks for the mark.
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

// Marks what a part of a graph receives early from another one: `parts` are all
// that run in one step, each on its device.
void MarkEarlyValues(absl::Span<Graph* const> parts);

// Whether what a node receives is marked.
bool IsEarlyValue(const Node& node);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EARLY_VALUES_H_
