// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many calls did the front answer, with which status, and how long did they
// take? Python adds these figures to its own (server_metrics.py).

#ifndef EXAMPLES_SERVING_FRONT_METRICS_H_
#define EXAMPLES_SERVING_FRONT_METRICS_H_

#include <grpcpp/support/status.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace front {

// Not thread-safe.
class Metrics {
 public:
  // `bounds` of the histogram's buckets are in seconds, and rise.
  Metrics(std::vector<double> bounds, const std::vector<std::string>& models)
      : bounds_(std::move(bounds)), models_(models.begin(), models.end()) {}

  void SetModels(const std::vector<std::string>& names) {
    models_ = {names.begin(), names.end()};
  }

  // Counts an answer. Clients make up names: what is not a model counts as
  // none.
  void Answered(const std::string& model, grpc::StatusCode code,
                double seconds);

  // [[model, code, sum of seconds, [count of bucket, ...]], ...], as JSON.
  std::string Json() const;

 private:
  struct Histogram {
    double sum = 0;
    std::vector<int64_t> counts;
  };

  const std::vector<double> bounds_;
  std::set<std::string> models_;
  std::map<std::pair<std::string, int>, Histogram> answers_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_METRICS_H_
