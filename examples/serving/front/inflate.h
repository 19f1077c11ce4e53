// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How large may a compressed request become? gRPC 1.51 looks at a message's
// size after it has decompressed the whole of it. So the front has gRPC leave
// messages as they are, and decompresses them itself.

#ifndef EXAMPLES_SERVING_FRONT_INFLATE_H_
#define EXAMPLES_SERVING_FRONT_INFLATE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>

namespace front {

// Decompresses a message that is gzip; other messages stay as they are. No
// protobuf begins as gzip does. Returns false if it is broken, or above `most`.
bool Inflate(grpc::ByteBuffer* message, size_t most);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_INFLATE_H_
