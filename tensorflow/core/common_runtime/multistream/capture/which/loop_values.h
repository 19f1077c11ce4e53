// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where are the values of a loop that runs on a GPU? TensorFlow leaves values
// from the host on the host, and sends them to the GPU in each iteration; an
// example is a loop over the columns of an argument. A captured step cannot
// contain such copies. So after placement, these values are moved to the GPU,
// by one copy before the loop:
//
//   host   x - Enter - Merge - Switch -> each time      x -> once
//   GPU        LoopCond               -> body       =>       Enter - Merge -
//   ...

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Does not change a loop that computes anything outside its GPU.
void MoveLoopValues(Graph* graph);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_LOOP_VALUES_H_
