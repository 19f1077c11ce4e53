// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls wait, which run, and which end without an answer of the engine?
//
//   gRPC's threads            Add ->  waits  --Take--> runs --Answered--> ended
//   a lane's thread (lanes.h)           |                |
//   deadline, cancelled, drained,       +----> ended <---+   its lane goes on,
//   --call-timeout                                           for nobody
//
// Each call ends once: who takes the call out of the queue, under the queue's
// mutex, ends the call, without the mutex. gRPC may call back as a call ends.

#ifndef EXAMPLES_SERVING_FRONT_CALL_QUEUE_H_
#define EXAMPLES_SERVING_FRONT_CALL_QUEUE_H_

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "examples/serving/front/metrics.h"

namespace front {

using Clock = std::chrono::steady_clock;

// A client's call, as the queue sees it. The object exists until it is ended.
class Call {
 public:
  virtual ~Call() = default;
  // Answers with a response, or with an error.
  virtual void Answer(grpc::ByteBuffer response) = 0;
  virtual void Fail(grpc::Status status) = 0;
  // Has Python answer.
  virtual void AskPython(grpc::ByteBuffer request) = 0;

  virtual Clock::time_point deadline() const = 0;  // the client's
};

class CallQueue {
 public:
  struct Limits {
    size_t running;             // calls, which is the number of lanes
    size_t waiting;             // calls
    double seconds;             // that a call may wait and run
    uint64_t bytes_of_request;  // most bytes of one large request
  };

  CallQueue(const Limits& limits, Metrics metrics);

  // The numbers of calls rise from 1.
  uint64_t NextNumber() { return ++last_number_; }
  // Has the call wait, or ends it with an error.
  void Add(uint64_t number, Call* call, grpc::ByteBuffer request);
  // The client is gone, or its deadline is up. The number may be of no call.
  void Cancelled(uint64_t number);

  struct Taken {
    uint64_t number;
    grpc::ByteBuffer request;
  };
  // For a lane: waits for a call.
  Taken Take();
  // The engine's answer to a call: a response, or the text of an error.
  void Answered(const Taken& taken, grpc::StatusCode code,
                grpc::ByteBuffer body);
  // The engine has called nothing: Python is asked, and counts the call.
  void NotPlain(Taken taken);

  // Ends the calls that took longer than limits.seconds. Call often.
  void EndLateCalls();

  // From now on calls are refused.
  void Drain();
  // Ends all calls.
  void Close();

  // Figures as JSON, without its outer braces.
  std::string Json();

 private:
  // Of a call that is not ended.
  struct Open {
    Call* call;
    grpc::ByteBuffer request;  // until the call runs
    std::string model;         // as the client names it
    Clock::time_point arrived;
    uint64_t bytes = 0;  // counted in large_bytes_
    bool runs = false;
  };
  using OpenCalls = std::map<uint64_t, Open>;  // in the order of arrival

  // These need the mutex. The second counts the call.
  grpc::Status WhyRefused(uint64_t bytes) const;
  Call* TakeOut(OpenCalls::iterator open);
  Call* TakeOut(OpenCalls::iterator open, grpc::StatusCode code);

  // Ends calls, the oldest first, while the oldest one is to end.
  void EndIf(const std::function<bool(const Open&)>& ends,
             const std::function<grpc::Status(bool runs)>& status);

  const Limits limits_;
  std::atomic<uint64_t> last_number_{0};
  std::mutex mutex_;
  std::condition_variable added_;
  OpenCalls open_;
  std::list<uint64_t> waiting_;
  size_t running_ = 0;  // lanes with a request, whose call may have ended
  uint64_t large_bytes_ = 0;
  bool draining_ = false;
  Metrics metrics_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_CALL_QUEUE_H_
