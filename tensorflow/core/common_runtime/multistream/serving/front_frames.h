// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do a model server's two processes say to each other? The front
// (examples/serving/front) has the gRPC connections, the engine has TensorFlow.
// Each thread of the engine that calls models has a socket, with one batch of
// requests at a time:
//
//   front -> engine   BatchHead, a RequestHead for each request,
//                     then the PredictRequests
//   engine -> front   AnswersHead, an AnswerHead for each request, then the
//                     answers: a PredictResponse, or the text of an error

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_FRONT_FRAMES_H_

#include <limits.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tensorflow::multistream {

// The number of this description: a front of another build may have another.
inline constexpr int kFrontFrames = 3;

// Both processes are on one machine.
struct BatchHead {
  uint64_t requests;
};

struct RequestHead {
  uint64_t size;  // bytes
};

struct AnswersHead {
  uint64_t steps;  // that the engine has made for the batch
};

struct AnswerHead {
  int64_t code;   // of gRPC's status
  uint64_t size;  // bytes
};

// A code: the engine called nothing, and Python is to answer the request.
inline constexpr int64_t kAskPython = -1;

// Reads ahead, so that a small batch takes one system call.
class SocketReader {
 public:
  explicit SocketReader(int socket) : socket_(socket), ahead_(kAhead) {}

  // False when the other end is closed.
  bool Read(void* to, size_t size) {
    char* at = static_cast<char*>(to);
    while (size > 0) {
      if (begin_ == end_) {
        if (size >= kAhead) return Receive(at, size, MSG_WAITALL) == size;
        begin_ = 0;
        end_ = Receive(ahead_.data(), kAhead, 0);
        if (end_ == 0) return false;
      }
      const size_t some = std::min(size, end_ - begin_);
      memcpy(at, ahead_.data() + begin_, some);
      begin_ += some;
      at += some;
      size -= some;
    }
    return true;
  }

 private:
  static constexpr size_t kAhead = 1 << 16;

  // With MSG_WAITALL, all of `size`. Returns 0 when the other end is closed.
  size_t Receive(char* to, size_t size, int flags) {
    size_t all = 0;
    do {
      const ssize_t got = recv(socket_, to + all, size - all, flags);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return 0;
      all += got;
    } while (all == 0 || (flags == MSG_WAITALL && all < size));
    return all;
  }

  const int socket_;
  std::vector<char> ahead_;
  size_t begin_ = 0, end_ = 0;  // of what was read ahead
};

// False when the other end is closed. Changes the parts.
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
