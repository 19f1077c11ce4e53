// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a call reach the engine? Each lane is a thread here, a socket, and a
// thread of the engine; one call at a time is on it (front_frames.h).

#ifndef EXAMPLES_SERVING_FRONT_LANES_H_
#define EXAMPLES_SERVING_FRONT_LANES_H_

#include "examples/serving/front/call_queue.h"

namespace front {

// Sends the queue's calls, one after another. Returns when the engine has
// closed the socket.
void ServeLane(int socket, CallQueue* queue);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_LANES_H_
