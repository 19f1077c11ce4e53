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
//
// With which type does an op on a GPU give the results of the same op on int32
// tensors? A GPU has few kernels for int32 (values_on_device.h). Another type
// of 32 bits needs no cast, and casts are kernels. With int64 there is a cast
// before, and, if numbers may exceed 32 bits, after the op.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_OPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
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

struct Counterpart {
  DataType type = DT_INVALID;  // in place of the attribute T, int32
  // Whether results of that type have to become int32 again.
  bool narrow = false;
};

// How `node`, whose T is int32, computes on a GPU; without a type if it cannot.
// `takes_int64`: whether it takes a number that is int64 already, and should
// rather remain int64. An error if the node divides by what may be 0.
absl::StatusOr<Counterpart> CounterpartOf(const Node& node, bool takes_int64);

// A node without a name and input, which converts numbers of a GPU: int32,
// int64 and types of 32 bits.
NodeDef Conversion(DataType from, DataType to);

// A constant without a name, of the int32 numbers of `value` as `type`: int64,
// or one of 32 bits.
NodeDef ConstantAs(DataType type, const Tensor& value);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_OPS_H_
