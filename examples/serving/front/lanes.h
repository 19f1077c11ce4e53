// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a batch of calls reach the engine? Each lane is a socket, a thread
// of the engine, and a thread here that waits for the answers; one batch at a
// time is on the lane (front_frames.h). The queue's thread sends.

#ifndef EXAMPLES_SERVING_FRONT_LANES_H_
#define EXAMPLES_SERVING_FRONT_LANES_H_

#include <mutex>

#include "examples/serving/front/call_queue.h"

namespace front {

class Lane {
 public:
  // The queue knows the lane by `number`.
  Lane(size_t number, int socket) : number_(number), socket_(socket) {}

  // Sends a batch to the engine. The lane must be idle.
  void Send(CallQueue::Batch batch);

  // Hands the answers to the queue. Returns when the engine has closed the
  // socket.
  void Serve(CallQueue* queue);

 private:
  const size_t number_;
  const int socket_;
  std::mutex mutex_;
  CallQueue::Batch batch_;  // on the lane
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_LANES_H_
