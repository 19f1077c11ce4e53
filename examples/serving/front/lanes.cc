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
using tensorflow::multistream::AnswersHead;
using tensorflow::multistream::BatchHead;
using tensorflow::multistream::kAskPython;
using tensorflow::multistream::RequestHead;
using tensorflow::multistream::SendAll;
using tensorflow::multistream::SocketReader;

// A socket holds about so many bytes that the engine has not read.
constexpr size_t kSmallBytes = 1 << 17;

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
  for (AnswersHead all; reader.Read(&all, sizeof all);) {
    CallQueue::Batch batch;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      batch.swap(batch_);
    }
    std::vector<AnswerHead> heads(batch.size());
    if (!reader.Read(heads.data(), heads.size() * sizeof heads[0])) return;
    size_t size = 0;
    for (const AnswerHead& head : heads) size += head.size;
    // A small slice has its bytes in itself: they come before it is copied.
    grpc_slice bytes = grpc_slice_malloc(size);
    if (!reader.Read(GRPC_SLICE_START_PTR(bytes), size)) return;
    const grpc::Slice bodies(bytes, grpc::Slice::STEAL_REF);
    queue->Idle(number_, all.steps);
    size_t begin = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t end = begin + heads[i].size;
      if (heads[i].code == kAskPython) {
        queue->NotPlain(std::move(batch[i]));
      } else {
        const grpc::Slice body = bodies.sub(begin, end);
        queue->Answered(batch[i], static_cast<grpc::StatusCode>(heads[i].code),
                        grpc::ByteBuffer(&body, 1));
      }
      begin = end;
    }
  }
}

Lanes::Lanes(const std::vector<int>& sockets) {
  for (const int socket : sockets) {
    lanes_.push_back(std::make_unique<Lane>(lanes_.size(), socket));
  }
}

void Lanes::Send(size_t lane, CallQueue::Batch batch) {
  size_t bytes = 0;
  for (const CallQueue::Taken& taken : batch) bytes += taken.request.Length();
  if (bytes <= kSmallBytes) return lanes_[lane]->Send(std::move(batch));
  const std::lock_guard<std::mutex> lock(mutex_);
  large_.emplace_back(lane, std::move(batch));
  added_.notify_one();
}

void Lanes::SendLarge() {
  for (;;) {
    std::pair<size_t, CallQueue::Batch> next;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [this] { return !large_.empty(); });
      next = std::move(large_.front());
      large_.pop_front();
    }
    lanes_[next.first]->Send(std::move(next.second));
  }
}

}  // namespace front
