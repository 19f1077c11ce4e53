// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many connections may there be? gRPC 1.51, which Debian and Ubuntu have,
// has no limit, and stops listening when it has no file descriptors left. So
// connections are accepted here and given to gRPC. A duplicate of each socket
// tells when gRPC shuts the socket down.

#ifndef EXAMPLES_SERVING_FRONT_ACCEPTOR_H_
#define EXAMPLES_SERVING_FRONT_ACCEPTOR_H_

#include <grpcpp/server_builder.h>

#include <string>
#include <vector>

namespace front {

// Returns sockets that listen on the addresses of a host, and sets `port` to
// their port; or returns none and sets `error`. A port of 0 is any that is
// free.
std::vector<int> Listen(const std::string& host, int* port, std::string* error);

// Gives the connections of listening sockets to gRPC, at most `most` at a time;
// closes others. Does not return.
[[noreturn]] void Accept(
    const std::vector<int>& listeners, size_t most,
    grpc::experimental::ExternalConnectionAcceptor* acceptor);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_ACCEPTOR_H_
