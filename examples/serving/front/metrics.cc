// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/metrics.h"

#include <algorithm>
#include <sstream>

namespace front {

void Metrics::Answered(const std::string& model, grpc::StatusCode code,
                       double seconds) {
  const auto known = seconds_.find(model);
  ++calls_[{known == seconds_.end() ? "" : model, code}];
  if (code != grpc::StatusCode::OK || known == seconds_.end()) return;
  Histogram& histogram = known->second;
  histogram.counts.resize(bounds_.size() + 1);
  histogram.sum += seconds;
  ++histogram.counts[std::lower_bound(bounds_.begin(), bounds_.end(), seconds) -
                     bounds_.begin()];
}

std::string Metrics::Json() const {
  // Names of models have letters, digits, '_', '.' and '-' (server_options.py).
  std::ostringstream out;
  out.precision(17);
  const char* comma = "";
  out << "\"calls\": [";
  for (const auto& [of, count] : calls_) {
    out << comma << "[\"" << of.first << "\", " << of.second << ", " << count
        << "]";
    comma = ", ";
  }
  comma = "";
  out << "], \"seconds\": [";
  for (const auto& [model, histogram] : seconds_) {
    if (histogram.counts.empty()) continue;
    out << comma << "[\"" << model << "\", " << histogram.sum << ", [";
    comma = "";
    for (const int64_t count : histogram.counts) {
      out << comma << count;
      comma = ", ";
    }
    out << "]]";
    comma = ", ";
  }
  out << "]";
  return out.str();
}

}  // namespace front
