// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recording compute with 32-bit integers? TensorFlow keeps an int32
// tensor on the host, and runs int32 ops of a GPU there. A recording contains
// no host code, so the recorded graph gets such values on the GPU:
//
//   the step:     ids -> StridedSlice -> AddV2 -> copy to the GPU -> gather
//                 ------- host -------------      ------- GPU -----------
//
//   the recorded  ids -> StridedSlice of float -> AddV2 of uint32 -> gather
//   graph:        ----------------------- GPU -------------------------
//
// The GPU has kernels for other types that leave the same bits
// (integer_ops.h). In between are Bitcasts, for which a GPU does
// nothing; or casts to int64 and back, which drops the bits that int32 has not.
//
// A value is decided if it depends on types, shapes and constants only. Decided
// values stay on the host, where they are computed when the step is recorded.
// A GPU op that takes one gets a copy of it that each replay repeats.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_VALUES_ON_DEVICE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_VALUES_ON_DEVICE_H_

#include <memory>
#include <string>

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

struct ValuesOnDevice {
  // The graph to record; nullptr: the step's own graph.
  std::unique_ptr<Graph> graph;
  // Empty, or why there is no such graph. Names the op and the node that needs
  // a value on the host.
  std::string obstacle;
  std::string obstacle_at;  // the node's name
  // The keys of received texts that `graph` lacks: only an Assert that fails
  // needs them.
  std::vector<std::string> messages;
};

// `graph` is one GPU's part of a step. Memory types are those of GPU kernels,
// also if the GPU is emulated.
ValuesOnDevice PutValuesOnDevice(const Graph& graph);

// Whether an _Arg or _Retval of type int32 has its tensor on the device, in a
// graph that PutValuesOnDevice made.
bool IsOnDevice(const Node& node);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_VALUES_ON_DEVICE_H_
