// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which arguments of a function are must-be-constant: needed on the host when
// XLA compiles the function? An axis, a shape and a number of rows are; they
// become part of the compiled code. If a variable is must-be-constant, XLA
// copies its value to the host, which waits for the GPU.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// The sorted indices of the must-be-constant arguments, by XLA's own analysis.
// `library` contains the function and all functions that it calls.
absl::StatusOr<std::vector<int>> CompileTimeConstants(
    const NameAttrList& function, const FunctionLibraryDefinition& library);

// Whether the outputs of `node` depend only on types, shapes and constants: on
// no input value of the graph, and on no variable.
bool IsDecidedByShapes(const Node& node);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_
