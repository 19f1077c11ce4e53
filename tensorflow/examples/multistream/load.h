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

// The load: client threads that run queries on one session.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_LOAD_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_LOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/examples/multistream/model.h"
#include "tensorflow/examples/multistream/results.h"

namespace tensorflow {
namespace multistream {

// A query is one Session::Run, as model servers call it.
struct Queries {
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  std::vector<InputSet> input_sets;  // used in turn
};

struct LoadOptions {
  int64_t number_of_threads = 1;
  int64_t iters = 0;       // of each thread
  double max_seconds = 0;  // 0: no limit

  // Results that each query of an input set must have; null: not compared.
  const std::vector<ResultSet>* reference = nullptr;
  double tolerance = 0;
};

// What comparing results with their reference showed.
struct Verification {
  int64_t verified = 0;
  int64_t wrong = 0;
  double max_absolute = 0;
  double max_relative = 0;
  std::string first_wrong;

  void Add(const Difference& difference);
  void Add(const Verification& other);
};

struct LoadFigures {
  double seconds = 0;                      // first query's start to last's end
  std::vector<float> latencies_in_millis;  // one of each query
  // How many queries ended in each second from the first query's start on. The
  // last is not a whole second.
  std::vector<int64_t> queries_of_seconds;
  // CPU seconds that the process used in each of those seconds but the last.
  std::vector<double> cpu_of_seconds;
  double cpu_seconds = 0;  // from start to end
  Verification verification;
};

// Runs each input set once, one after the other.
absl::StatusOr<std::vector<ResultSet>> RunEachOnce(Session* session,
                                                   const Queries& queries);

// Runs the load. The first error of any query ends it.
absl::StatusOr<LoadFigures> RunLoad(Session* session, const Queries& queries,
                                    const LoadOptions& options);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_LOAD_H_
