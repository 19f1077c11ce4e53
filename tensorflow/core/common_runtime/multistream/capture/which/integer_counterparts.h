// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// With which type does an op on a GPU give the results of the same op on int32
// tensors? A GPU has few kernels for int32 (values_on_device.h). Another type
// of 32 bits needs no cast, and casts are kernels. With int64 there is a cast
// before, and, if numbers may exceed 32 bits, after the op.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_COUNTERPARTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_COUNTERPARTS_H_

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

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

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_INTEGER_COUNTERPARTS_H_
