// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/lanes.h"

#include <grpc/slice.h>
#include <grpcpp/support/slice.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/serving/front_frames.h"

namespace front {
namespace {

using tensorflow::multistream::AnswerHead;
using tensorflow::multistream::kAskPython;
using tensorflow::multistream::RequestHead;

bool SendAll(int socket, std::vector<iovec> parts) {
  for (size_t at = 0; at < parts.size();) {
    msghdr message = {};
    message.msg_iov = &parts[at];
    message.msg_iovlen = std::min<size_t>(parts.size() - at, IOV_MAX);
    ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    while (at < parts.size() &&
           static_cast<size_t>(sent) >= parts[at].iov_len) {
      sent -= static_cast<ssize_t>(parts[at++].iov_len);
    }
    if (sent > 0) {
      parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + sent;
      parts[at].iov_len -= sent;
    }
  }
  return true;
}

bool ReceiveAll(int socket, void* to, size_t size) {
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

bool SendRequest(int socket, const grpc::ByteBuffer& request) {
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok()) return false;
  RequestHead head = {request.Length()};
  std::vector<iovec> parts = {{&head, sizeof head}};
  for (const grpc::Slice& slice : slices) {
    if (slice.size() > 0) {
      parts.push_back({const_cast<uint8_t*>(slice.begin()), slice.size()});
    }
  }
  return SendAll(socket, std::move(parts));
}

}  // namespace

void ServeLane(int socket, CallQueue* queue) {
  for (;;) {
    CallQueue::Taken taken = queue->Take();
    AnswerHead head;
    if (!SendRequest(socket, taken.request) ||
        !ReceiveAll(socket, &head, sizeof head)) {
      return;
    }
    if (head.code == kAskPython) {
      queue->NotPlain(std::move(taken));
      continue;
    }
    // A small slice has its bytes in itself: they come before it is copied.
    grpc_slice bytes = grpc_slice_malloc(head.size);
    if (!ReceiveAll(socket, GRPC_SLICE_START_PTR(bytes), head.size)) return;
    const grpc::Slice body(bytes, grpc::Slice::STEAL_REF);
    taken.request.Clear();
    queue->Answered(taken, static_cast<grpc::StatusCode>(head.code),
                    grpc::ByteBuffer(&body, 1));
  }
}

}  // namespace front
