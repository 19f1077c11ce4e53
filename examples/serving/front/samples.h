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

  bool traced() const { return traced_; }

  // Draws whether a call is of its model's share.
  bool Draw(const std::string& model);

 private:
  std::atomic<bool> traced_{false};
  std::atomic<bool> any_{false};  // a share is above 0
  std::mutex mutex_;
  std::map<std::string, double> shares_;
};

// Whether a client traces a call with this `traceparent` in its metadata; empty
// if the metadata has none.
bool IsTraced(std::string_view traceparent);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_SAMPLES_H_
