// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/metrics.h"

#include <algorithm>
#include <sstream>

namespace front {

void Metrics::Answered(const std::string& model, grpc::StatusCode code,
                       double seconds) {
  Histogram& histogram = answers_[{models_.count(model) ? model : "", code}];
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
  out << "[";
  for (const auto& [of, histogram] : answers_) {
    out << comma << "[\"" << of.first << "\", " << of.second << ", "
        << histogram.sum << ", [";
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
