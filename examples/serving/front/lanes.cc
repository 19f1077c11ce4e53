// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/lanes.h"

#include <grpc/slice.h>
#include <grpcpp/support/slice.h>
#include <sys/uio.h>

#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/serving/front_frames.h"

namespace front {
namespace {

using tensorflow::multistream::AnswerHead;
using tensorflow::multistream::kAskPython;
using tensorflow::multistream::ReceiveAll;
using tensorflow::multistream::RequestHead;
using tensorflow::multistream::SendAll;

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
  return SendAll(socket, parts.data(), parts.size());
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
