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
using tensorflow::multistream::BatchHead;
using tensorflow::multistream::kAskPython;
using tensorflow::multistream::RequestHead;
using tensorflow::multistream::SendAll;
using tensorflow::multistream::SocketReader;

}  // namespace

void Lane::Send(CallQueue::Batch batch) {
  BatchHead head = {batch.size()};
  std::vector<RequestHead> sizes;
  std::vector<std::vector<grpc::Slice>> requests(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    // It fails only for a buffer that is not valid: one without bytes.
    if (!batch[i].request.Dump(&requests[i]).ok()) requests[i].clear();
    sizes.push_back({batch[i].request.Length()});
  }
  std::vector<iovec> parts = {{&head, sizeof head},
                              {sizes.data(), sizes.size() * sizeof sizes[0]}};
  for (const std::vector<grpc::Slice>& slices : requests) {
    for (const grpc::Slice& slice : slices) {
      if (slice.size() > 0) {
        parts.push_back({const_cast<uint8_t*>(slice.begin()), slice.size()});
      }
    }
  }
  // Small slices have their bytes in themselves, so the batch is moved last.
  // The answer can come as soon as the last byte is sent: the lock makes the
  // lane's thread wait for the batch.
  std::lock_guard<std::mutex> lock(mutex_);
  SendAll(socket_, parts.data(), parts.size());  // if it fails, Serve ends
  batch_ = std::move(batch);
}

void Lane::Serve(CallQueue* queue) {
  SocketReader reader(socket_);
  for (AnswerHead first; reader.Read(&first, sizeof first);) {
    CallQueue::Batch batch;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      batch.swap(batch_);
    }
    std::vector<AnswerHead> heads(batch.size(), first);
    size_t size = first.size;
    for (size_t i = 1; i < batch.size(); ++i) {
      if (!reader.Read(&heads[i], sizeof heads[i])) return;
      size += heads[i].size;
    }
    // A small slice has its bytes in itself: they come before it is copied.
    grpc_slice bytes = grpc_slice_malloc(size);
    if (!reader.Read(GRPC_SLICE_START_PTR(bytes), size)) return;
    const grpc::Slice bodies(bytes, grpc::Slice::STEAL_REF);
    queue->Idle(number_);
    size_t begin = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t end = begin + heads[i].size;
      if (heads[i].code == kAskPython) {
        queue->NotPlain(std::move(batch[i]));
      } else {
        const grpc::Slice body = bodies.sub(begin, end);
        queue->Answered(batch[i].number,
                        static_cast<grpc::StatusCode>(heads[i].code),
                        grpc::ByteBuffer(&body, 1));
      }
      begin = end;
    }
  }
}

}  // namespace front
