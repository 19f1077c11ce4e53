// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does multistream_inference serve, and with what inputs? Each error names
// the argument of the command line, its value and what is allowed.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace multistream {

// Reads a GraphDef: text if `path` ends in .pbtxt or .txt, else binary.
absl::Status LoadModel(const std::string& path, GraphDef* graph);

// Reads a ConfigProto in text format.
absl::Status LoadConfig(const std::string& path, ConfigProto* config);

// What one query feeds to Session::Run.
using Query = std::vector<std::pair<std::string, Tensor>>;

// Makes `count` queries of random values for the placeholders `names`. The same
// arguments give the same values in every process. An unknown first dimension
// becomes `batch_size`. Integers are below the placeholder's attribute
// `_input_range`, or below 100.
absl::StatusOr<std::vector<Query>> MakeQueries(
    const GraphDef& graph, const std::vector<std::string>& names,
    int64_t batch_size, int count);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_
