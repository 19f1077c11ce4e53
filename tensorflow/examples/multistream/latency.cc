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

#include "tensorflow/examples/multistream/latency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tensorflow {
namespace multistream {

double Percentile(const std::vector<float>& sorted, double percent) {
  if (sorted.empty()) return 0;
  // Multiplied before it is divided: 99 * 100 / 100 is exactly 99.
  const double rank = std::ceil(percent * sorted.size() / 100.0);
  const double last = static_cast<double>(sorted.size());
  return sorted[static_cast<size_t>(std::clamp(rank, 1.0, last)) - 1];
}

LatencySummary Summarize(std::vector<float> milliseconds) {
  LatencySummary summary;
  if (milliseconds.empty()) return summary;
  std::sort(milliseconds.begin(), milliseconds.end());
  summary.mean =
      std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) /
      milliseconds.size();
  summary.p50 = Percentile(milliseconds, 50);
  summary.p95 = Percentile(milliseconds, 95);
  summary.p99 = Percentile(milliseconds, 99);
  summary.max = milliseconds.back();
  return summary;
}

}  // namespace multistream
}  // namespace tensorflow
