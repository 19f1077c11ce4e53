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

// What does the user want? The command line of multistream_inference.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_COMMAND_LINE_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_COMMAND_LINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tensorflow {
namespace multistream {

struct CommandLine {
  bool help = false;  // the rest is not filled in

  std::string model_path;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  int64_t batch_size = 0;
  int64_t iters = 0;  // of each thread
  int64_t number_of_threads = 0;
  std::string config_path;

  int64_t warmup = 20;  // of each thread
  int64_t input_sets = 32;
  int64_t seed = 1;
  double max_seconds = 0;  // 0: no limit

  bool verify = false;
  double tolerance = 0;        // 0: bit by bit
  std::string reference;       // file to read the reference results from
  std::string save_reference;  // file to write them to
  std::string json;            // file to write the figures to
};

// Reads the arguments that follow the program's name. An error names the
// argument, its value and what is allowed.
absl::StatusOr<CommandLine> ParseCommandLine(
    const std::vector<std::string>& arguments);

// What --help prints.
std::string Usage();

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_COMMAND_LINE_H_
