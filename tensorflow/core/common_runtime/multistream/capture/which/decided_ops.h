// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recording know what TensorFlow computes of shapes on the GPU?
// tf.tensordot gathers sizes and multiplies them there, and copies the product
// to the host, which waits for the GPU. So does the condition of a loop that is
// made of two, as of `map_fn` and Keras's RNN, in each iteration. In a recorded
// graph, such ops of decided values (values_on_device.h) run on the host:
//
//   Shape -- to the GPU -- GatherV2 -- Prod -- to the host -- Reshape
//   Shape -- GatherV2 -- Prod -- Reshape                        recorded
//   host     host        host

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_OPS_H_

#include <string>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether the node may run on the host if its inputs are decided: integers and
// truth values have the same bits there.
bool MayRunOnHost(const Node& node);

// Nodes of a decided value of a type: one copies the value to the device, and
// one keeps it on the host, in memory that ops may copy from in replays. Their
// kernels are for recordings only (record/decided_values.cc).
inline constexpr char kCopyOfDecided[] = "_MultiStreamCopyOfDecided";
inline constexpr char kKeptDecided[] = "_MultiStreamKeptDecided";
NodeDef CopyDecided(DataType type);
NodeDef KeepDecided(DataType type);

// The node, with all inputs and outputs on the host (base/host_kernels.h).
NodeDef OnHost(const Node& node, const std::string& name);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_OPS_H_
