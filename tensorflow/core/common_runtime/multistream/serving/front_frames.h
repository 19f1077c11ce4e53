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

#include <limits.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
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

// Both return false when the other end is closed. SendAll changes the parts.
inline bool ReceiveAll(int socket, void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = recv(socket, at, size, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= got;
  }
  return true;
}

inline bool SendAll(int socket, iovec* parts, size_t count) {
  while (count > 0) {
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = std::min<size_t>(count, IOV_MAX);
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    while (count > 0 && static_cast<size_t>(sent) >= parts->iov_len) {
      sent -= static_cast<ssize_t>(parts->iov_len);
      ++parts;
      --count;
    }
    if (count > 0) {
      parts->iov_base = static_cast<char*>(parts->iov_base) + sent;
      parts->iov_len -= sent;
    }
  }
  return true;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_
