// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What becomes of an HTTP request? A plain POST to :predict becomes a
// PredictRequest, and goes to the queue as a gRPC call does (call_queue.h).
// Every other request goes to the HTTP server in Python as it is:
//
//   client -> HttpConnection -> JSON to PredictRequest -> CallQueue -> engine
//                   |                                         |
//                   +-----------> HTTP server in Python <-----+ not plain

#ifndef EXAMPLES_SERVING_FRONT_REST_CALLS_H_
#define EXAMPLES_SERVING_FRONT_REST_CALLS_H_

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "examples/serving/front/call_queue.h"
#include "examples/serving/front/http_connection.h"
#include "examples/serving/front/samples.h"
#include "examples/serving/front/served_signatures.h"

namespace front {

// What the path of a predict request names: NAME, or NAME and its version, of
// /v1/models/NAME/versions/V:predict.
struct PredictPath {
  std::string model;
  std::optional<int64_t> version;

  // Nothing for every other path, also with a label or a query.
  static std::optional<PredictPath> Of(std::string_view target);
};

class RestCalls {
 public:
  // They must live longer. `python` is the file that Python listens on.
  RestCalls(CallQueue* queue, Samples* samples,
            const ServedSignatures* signatures, std::string python,
            uint64_t most_bytes);

  // Has a request answered.
  void Handle(std::shared_ptr<HttpExchange> exchange);

 private:
  class RestCall;

  void Predict(std::shared_ptr<HttpExchange> exchange, const PredictPath& path);
  // Large bodies have threads of their own: others do not wait for them.
  template <class Work>
  void Run(size_t bytes, std::shared_ptr<HttpExchange> exchange, Work work);

  CallQueue* const queue_;
  Samples* const samples_;
  const ServedSignatures* const signatures_;
  const std::string python_;
  const uint64_t most_bytes_;
  boost::asio::thread_pool large_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_REST_CALLS_H_
