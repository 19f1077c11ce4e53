// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where are the values of a loop that runs on a GPU? TensorFlow leaves what
// comes from the host there, and sends it to the GPU each time round: a loop
// that takes one step for each column of an argument does. No captured step can
// have that. Once a graph has been placed, such values are moved to the GPU, by
// one copy before the loop:
//
//   host   x - Enter - Merge - Switch -> each time      x -> once
//   GPU        LoopCond               -> body       =>       Enter - Merge -
//   ...

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Leaves a loop as it is if it computes anything elsewhere than on its GPU.
void MoveLoopValues(Graph* graph);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_
