// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which ops of a training compute the same values, so that one of them is
// enough? (Common subexpression elimination.) Keras's optimizers compute the
// learning rate of each variable anew, from one read of the step's number for
// each:
//
//   the step:      read -> Cast -> Pow -> Sqrt -> Mul -> variable 1
//                  read -> Cast -> Pow -> Sqrt -> Mul -> variable 2 ...
//   the recorded   read -> Cast -> Pow -> Sqrt -> Mul -> variable 1
//   graph:                                           \-> variable 2 ...
//
// TensorFlow merges only what takes the same inputs, and reads are apart, as a
// variable may change between them. Two reads give the same value if each op of
// the graph that may change the variable comes after both. Another argument
// cannot be the same variable: then the step is not recorded
// (RecordedVariables).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EQUAL_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EQUAL_OPS_H_

#include <memory>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// `recorded`, which is to be recorded in place of `graph` (values_on_device.h;
// nullptr: `graph` is), with one op in place of those that compute the same. A
// graph that changes no variable, or has loops or branches, stays as it is.
std::unique_ptr<Graph> WithoutEqualOps(const Graph& graph,
                                       std::unique_ptr<Graph> recorded);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_EQUAL_OPS_H_
