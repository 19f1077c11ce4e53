// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does the front read of a PredictRequest (predict_messages.h)? Only its
// beginning: which function is asked, and how many rows come first. The engine
// checks the whole request.

#ifndef EXAMPLES_SERVING_FRONT_REQUEST_SPEC_H_
#define EXAMPLES_SERVING_FRONT_REQUEST_SPEC_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

namespace front {

struct RequestSpec {
  std::string model;      // empty if the request does not begin with its name
  std::string signature;  // as asked for; empty for the default one
  std::string bytes;      // of the whole model_spec, with the version
  // The first dimension of the first input, cut to 2^20. 1 if the input is a
  // scalar, or if its shape does not come first in the request.
  int64_t rows = 1;
};

RequestSpec SpecOf(const grpc::ByteBuffer& request);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_REQUEST_SPEC_H_
