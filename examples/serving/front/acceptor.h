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

namespace front {

// Returns a socket that listens on an address, and sets `port` to its port; or
// returns -1 and sets `error`. A port of 0 is any that is free.
int Listen(const std::string& host, int* port, std::string* error);

// Gives the connections of a listening socket to gRPC, at most `most` at a
// time; closes others. Does not return.
[[noreturn]] void Accept(
    int listener, size_t most,
    grpc::experimental::ExternalConnectionAcceptor* acceptor);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_ACCEPTOR_H_
