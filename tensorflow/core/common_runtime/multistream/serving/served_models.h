// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a model server's engine answer requests that come from another
// process (front_frames.h), without the GIL? Python publishes the versions of
// models, and gives a thread to each socket:
//
//   socket -> model, version, signature -> Predictor -> socket
//
// Versions are withdrawn while requests are answered.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVED_MODELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVED_MODELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/serving/predict_messages.h"
#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"

namespace tensorflow::multistream {

// Thread-safe.
class ServedModels {
 public:
  // By name. A request without a name asks for "serving_default".
  using Signatures = std::map<std::string, const Predictor*, std::less<>>;

  struct Version {
    Signatures signatures;
    absl::Mutex used;  // for reading, by requests
  };
  using Withdrawn = std::shared_ptr<Version>;

  // The signatures' predictors live until the version is withdrawn or replaced,
  // and WaitForRequests has returned. Returns what the version replaces, of the
  // same number: at each moment requests find one of the two. Null for none.
  Withdrawn Publish(absl::string_view model, int64_t version,
                    Signatures signatures);

  // Requests that come later do not find the version. Null if there is none.
  Withdrawn Withdraw(absl::string_view model, int64_t version);
  // Returns when no request uses the version.
  static void WaitForRequests(const Withdrawn& withdrawn);

  // Answers the batches of requests that come through a socket, one after
  // another, until its other end is closed.
  void Answer(int socket);

 private:
  using Versions = std::map<int64_t, std::shared_ptr<Version>>;

  // No answer if Python is to answer. Adds how many steps were made.
  std::vector<std::optional<Prediction>> Answer(
      absl::Span<const absl::string_view> batch, size_t* steps);
  // The same for requests that ask for one function. Returns how many steps
  // were made.
  size_t Predict(absl::Span<const PredictRequest* const> requests,
                 absl::Span<std::optional<Prediction>> answers);
  // Null if there is none. Sets `number` to the version's number.
  std::shared_ptr<Version> Find(const PredictRequest& request, int64_t* number);

  absl::Mutex mutex_;
  std::map<std::string, Versions, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVED_MODELS_H_
