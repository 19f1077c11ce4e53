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

// Are results right? The comparison of results with a reference, and the file
// that carries a reference from one process to another.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_RESULTS_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_RESULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// What one query fetched, in the order of the outputs' names.
using ResultSet = std::vector<Tensor>;

struct Difference {
  bool wrong = false;
  double max_absolute = 0;
  double max_relative = 0;  // to the reference
  std::string first;        // the first wrong element, for people
};

// Compares one query's results with its reference. With a tolerance of 0 they
// must be equal bit by bit; else |result - reference| may be up to
// tolerance * max(1, |reference|).
Difference Compare(const ResultSet& results, const ResultSet& reference,
                   double tolerance);

// What results depend on. Two processes whose origins are equal must get the
// same results.
struct Origin {
  uint64_t model_fingerprint = 0;
  std::vector<std::string> input_names;
  uint64_t inputs_fingerprint = 0;  // of the values of all input sets
  std::vector<std::string> output_names;
  int64_t batch_size = 0;
  int64_t seed = 0;
  int64_t input_sets = 0;
};

// Fingerprint of tensors' types, shapes and values.
uint64_t FingerprintOf(const std::vector<std::vector<Tensor>>& sets);

// Writes `reference`, one ResultSet for each input set, to `path`. The file
// appears whole or not at all.
absl::Status SaveReference(const std::string& path, const Origin& origin,
                           const std::vector<ResultSet>& reference);

// Reads what SaveReference wrote. An error if the file is damaged, or if it was
// made from something else than `origin`; the message says what differs.
absl::StatusOr<std::vector<ResultSet>> LoadReference(const std::string& path,
                                                     const Origin& origin);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_RESULTS_H_
