// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do a model server's two processes say to each other? The front
// (examples/serving/front) has the gRPC connections, the engine has TensorFlow.
// Each thread of the engine that calls models has a socket, with one request at
// a time:
//
//   front -> engine   RequestHead, a PredictRequest
//   engine -> front   AnswerHead, a PredictResponse or the text of an error

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_

#include <cstdint>

namespace tensorflow::multistream {

// Sizes are in bytes. Both processes are on one machine.
struct RequestHead {
  uint64_t size;
};

struct AnswerHead {
  int64_t code;  // of gRPC's status
  uint64_t size;
};

// A code: the engine called nothing, and Python is to answer the request.
inline constexpr int64_t kAskPython = -1;

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_
