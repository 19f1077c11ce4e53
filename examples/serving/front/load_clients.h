// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a client call Predict, by gRPC or by REST, and is the answer right?

#ifndef EXAMPLES_SERVING_FRONT_LOAD_CLIENTS_H_
#define EXAMPLES_SERVING_FRONT_LOAD_CLIENTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace front {

// A request, in both forms, and the bytes of the values of the right answer,
// which are floats.
struct Query {
  std::string message, json, values;
};

// Those of a folder: 0.request, 0.json and 0.values, 1.request, ...
std::vector<Query> ReadQueries(const std::string& folder);

struct Outcome {
  // kClose: other bits that are close, as of a step with other batches.
  enum Answer { kSame, kClose, kWrong };
  Answer answer = kSame;
  std::string error;  // empty if the call was answered
};

// Each client has a connection, and may have several calls at a time.
class Clients {
 public:
  using Done = std::function<void(const Outcome&)>;

  virtual ~Clients() = default;
  // Calls `done`, soon, on a thread of its own.
  virtual void Call(size_t client, const Query& query, Done done) = 0;
};

std::unique_ptr<Clients> GrpcClients(const std::string& address, int clients);
// `url` is http://HOST:PORT/PATH.
std::unique_ptr<Clients> RestClients(const std::string& url, int clients);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_LOAD_CLIENTS_H_
