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

// How long do queries take? Percentiles of latencies.

#ifndef TENSORFLOW_EXAMPLES_MULTISTREAM_LATENCY_H_
#define TENSORFLOW_EXAMPLES_MULTISTREAM_LATENCY_H_

#include <vector>

namespace tensorflow {
namespace multistream {

// All in milliseconds; 0 if there was no query.
struct LatencySummary {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

// The smallest of `sorted` that at least `percent` percent of its values do not
// exceed (the nearest-rank percentile). 0 if it is empty; `percent` from 0 to
// 100.
double Percentile(const std::vector<float>& sorted, double percent);

// `milliseconds` in any order.
LatencySummary Summarize(std::vector<float> milliseconds);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_EXAMPLES_MULTISTREAM_LATENCY_H_
