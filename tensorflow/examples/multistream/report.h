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

// What came out? The figures of one run, for people and as JSON.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_REPORT_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/examples/multistream/command_line.h"
#include "tensorflow/examples/multistream/latency.h"
#include "tensorflow/examples/multistream/load.h"

namespace tensorflow {
namespace multistream {

struct Report {
  CommandLine command_line;
  int stream_group_count = 1;
  // Whether the GPUs are emulated on the CPU, so that times say nothing.
  bool emulated = false;
  int64_t queries = 0;
  double seconds = 0;
  double queries_per_second = 0;
  LatencySummary latency;
  // How many queries ended in each whole second.
  std::vector<int64_t> queries_of_seconds;
  // CPU seconds that the process used in each of them, and in all.
  std::vector<double> cpu_of_seconds;
  double cpu_seconds = 0;
  Verification verification;
  // Steps are those of the measured queries only; bytes are as they were at the
  // end. Empty without stream groups.
  std::vector<StreamGroupStats> groups;
};

// `after`, with the steps that `before` had already seen taken off.
std::vector<StreamGroupStats> StepsSince(
    const std::vector<StreamGroupStats>& before,
    std::vector<StreamGroupStats> after);

std::string ReportAsText(const Report& report);
std::string ReportAsJson(const Report& report);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_REPORT_H_
