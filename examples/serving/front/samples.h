// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls of Predict does Python answer although C++ could? A share of the
// calls of some models, which Python logs or traces, and the calls whose client
// traces them (https://www.w3.org/TR/trace-context).

#ifndef EXAMPLES_SERVING_FRONT_SAMPLES_H_
#define EXAMPLES_SERVING_FRONT_SAMPLES_H_

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace front {

// Thread-safe.
class Samples {
 public:
  // From now on, the share of a model's calls, from 0 to 1.
  void SetShare(const std::string& model, double share);
  // From now on, whether calls that their clients trace are sampled.
  void SetTraced(bool traced) { traced_ = traced; }

  struct Sample {
    bool drawn;   // the call is of the share
    bool traced;  // its client traces it
  };
  // Draws whether a call is of its model's share. `traceparent` is of the
  // call's metadata, or empty.
  Sample Take(const std::string& model, std::string_view traceparent);

 private:
  bool Draw(const std::string& model);

  std::atomic<bool> traced_{false};
  std::atomic<bool> any_{false};  // a share is above 0
  std::mutex mutex_;
  std::map<std::string, double> shares_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_SAMPLES_H_
