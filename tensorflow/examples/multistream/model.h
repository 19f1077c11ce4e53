/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// What is served? The graph, the session's configuration, and the tensors that
// a query feeds and fetches. Every error names the file or the name, and what
// is allowed.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow {
namespace multistream {

struct Model {
  GraphDef graph;
  uint64_t fingerprint = 0;  // of the file's bytes
};

// Reads a GraphDef: text if `path` ends in .pbtxt or .txt, binary if it ends in
// .pb, else whichever it is.
absl::StatusOr<Model> LoadModel(const std::string& path);

// Reads a ConfigProto in text format.
absl::StatusOr<ConfigProto> LoadConfig(const std::string& path);

// A placeholder to be fed with random values.
struct InputSpec {
  std::string name;  // as in the command line
  DataType dtype = DT_INVALID;
  TensorShape shape;
  int64_t range = 0;  // integers are drawn from [0, range)
};

// Finds the placeholders named `names`. An unknown first dimension becomes
// `batch_size`.
absl::StatusOr<std::vector<InputSpec>> ResolveInputs(
    const GraphDef& graph, const std::vector<std::string>& names,
    int64_t batch_size);

// Checks that `names` are tensors of nodes of `graph`.
absl::Status CheckOutputs(const GraphDef& graph,
                          const std::vector<std::string>& names);

// The tensors of one query, in the order of the inputs' names.
using InputSet = std::vector<Tensor>;

// Makes `count` different sets of random inputs. The same arguments give the
// same values in every process.
absl::StatusOr<std::vector<InputSet>> MakeInputSets(
    const std::vector<InputSpec>& inputs, int64_t count, int64_t seed);

// Up to `limit` of `names` most like `name`, best first.
std::vector<std::string> NearNames(const std::string& name,
                                   const std::vector<std::string>& names,
                                   size_t limit);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_MODEL_H_
