// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a batch of calls reach the engine? Each lane is a socket, a thread
// of the engine, and a thread here that waits for the answers; one batch at a
// time is on the lane (front_frames.h). The thread that calls Send sends a
// small batch itself. A large batch fills the socket, and would keep gRPC's
// threads and the answers of other calls waiting: a thread of its own sends it.

#ifndef EXAMPLES_SERVING_FRONT_LANES_H_
#define EXAMPLES_SERVING_FRONT_LANES_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

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

class Lanes {
 public:
  explicit Lanes(const std::vector<int>& sockets);

  size_t size() const { return lanes_.size(); }
  Lane* lane(size_t number) { return lanes_[number].get(); }

  // Has a lane that is idle send a batch, soon.
  void Send(size_t lane, CallQueue::Batch batch);
  // Does not return: sends large batches.
  [[noreturn]] void SendLarge();

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::pair<size_t, CallQueue::Batch>> large_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_LANES_H_
