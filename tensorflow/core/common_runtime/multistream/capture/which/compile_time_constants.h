// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which values does XLA need on the host when it compiles a function? Such a
// value is part of what XLA compiles: an axis, a shape, a number of rows. XLA
// copies a variable's value to the host for it, which waits for the GPU.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// The indices of the function's arguments that XLA's own analysis finds,
// sorted. `library` has the function and all that it calls.
absl::StatusOr<std::vector<int>> CompileTimeConstants(
    const NameAttrList& function, const FunctionLibraryDefinition& library);

// Whether types, shapes and constants alone decide what `node` gives: no value
// that the graph takes, and no variable.
bool IsDecidedByShapes(const Node& node);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_COMPILE_TIME_CONSTANTS_H_
