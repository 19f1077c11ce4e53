// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which calls wait, which run, and which end without an answer of the engine?
//
//   gRPC's threads           Add ->  waits  --Send--> runs --Answered--> ended
//   a lane's thread (lanes.h)          |               |
//   deadline, cancelled, drained,      +----> ended <--+   its lane goes on,
//   --call-timeout                                         for nobody
//
// A lane runs one batch of calls at a time. The thread that has added a call,
// or whose lane is idle again, sends what may run. Most batches are one call;
// calls of a function with a policy (Batching) wait for others like them:
//
//   calls   1 row       1 row --- 2 rows               1 row
//   lane 0  [ 1 row        ]                           [ 1 ...
//   lane 1                     [ 1 + 2 rows      ]
//
// The first call runs at once, as no batch of its function runs.
//
// Each call ends once: the thread that takes the call out of the queue, under
// the queue's mutex, ends the call, without the mutex. gRPC may call back as a
// call ends.

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

#include "examples/serving/front/large_requests.h"
#include "examples/serving/front/metrics.h"
#include "examples/serving/front/request_spec.h"

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
  // Whether the call itself counts its Answer, by CallQueue::Count: the answer
  // may still become an error.
  virtual bool CountsItsAnswer() const { return false; }
};

// How calls of one function share batches.
struct Batching {
  int64_t most_rows = 1;              // of a batch
  std::chrono::microseconds wait{0};  // for others, if a batch runs already
  size_t most_running = SIZE_MAX;     // batches at once
};

// What calls of one model may take from those of others.
struct Share {
  size_t most_running = SIZE_MAX;  // batches at once
  size_t most_waiting = SIZE_MAX;  // calls
  int priority = 0;                // the highest goes first
};

class CallQueue {
 public:
  struct Limits {
    size_t lanes;    // batches that run at once
    size_t waiting;  // calls
    double seconds;  // that a call may wait and run
  };
  struct Taken {
    uint64_t number;
    grpc::ByteBuffer request;
    uint64_t bytes;  // that are counted as a large request until the answer
  };
  using Batch = std::vector<Taken>;
  // Has a lane run a batch. When the answers are there, the lane's thread calls
  // Idle, and Answered or NotPlain for each call.
  using Send = std::function<void(size_t lane, Batch batch)>;

  // `large` must live longer.
  CallQueue(const Limits& limits, LargeRequests* large, Metrics metrics,
            Send send);

  // The numbers of calls rise from 1.
  uint64_t NextNumber() { return ++last_number_; }
  // Has the call wait or run, or ends it with an error.
  void Add(uint64_t number, Call* call, RequestSpec spec,
           grpc::ByteBuffer request);
  // The client is gone, or its deadline is up. The number may be of no call.
  void Cancelled(uint64_t number);

  // Counts a call of a model that the queue does not count itself, and how many
  // seconds the call took.
  void Count(const std::string& model, grpc::StatusCode code, double seconds);

  // The engine's answer to a call: a response, or the text of an error.
  void Answered(const Taken& taken, grpc::StatusCode code,
                grpc::ByteBuffer body);
  // The engine has called nothing: Python is asked, and counts the call.
  void NotPlain(Taken taken);
  // The lane's batch has ended; the engine has made so many steps of it.
  void Idle(size_t lane, size_t steps);

  // From now on, of calls of a model's signature.
  void SetBatching(const std::string& model, const std::string& signature,
                   const Batching& batching);
  // From now on, of calls of a model.
  void SetShare(const std::string& model, const Share& share);
  // The models, for metrics.
  void SetModels(const std::vector<std::string>& names);

  // Does not return: runs batches that have waited long enough.
  [[noreturn]] void RunWaiting();
  // Ends the calls that took longer than limits.seconds. Call often.
  void EndLateCalls();

  // From now on calls are refused.
  void Drain();
  // Ends all calls.
  void Close();

  // Figures as JSON, without its outer braces.
  std::string Json();

 private:
  struct Model {
    Share share;
    size_t waiting = 0;  // calls
    size_t running = 0;  // batches
  };
  // A signature of a model, in all its versions.
  struct Function {
    Batching batching;
    size_t running = 0;  // batches
    // So many batches are to have one call each: the engine makes a step for
    // each call all the same.
    int alone = 0;
  };
  // Calls that may share a batch, in the order of arrival. Calls that may not
  // share batches have one line for each model with a share, and one for all
  // other models.
  struct Line {
    Model* model;
    Function* function;
    std::list<uint64_t> waiting;
    int64_t rows = 0;    // that wait
    size_t running = 0;  // batches

    const Batching& batching() const;
    // Whether the limits of the model and the function allow another batch.
    bool MayRun() const;
  };
  // By the model, and RequestSpec::bytes if calls may share batches. An empty
  // line is taken away.
  using Lines = std::map<std::pair<std::string, std::string>, Line>;
  // Of a call that is not ended.
  struct Open {
    Call* call;
    grpc::ByteBuffer request;  // until the call runs
    std::string model;         // as the client names it
    int64_t rows;
    Clock::time_point arrived;
    uint64_t bytes;        // counted in large_
    Lines::iterator line;  // while it waits, with its place there
    std::list<uint64_t>::iterator place;
    bool runs = false;
  };
  using OpenCalls = std::map<uint64_t, Open>;  // in the order of arrival

  // These need the mutex. WhyRefused counts the bytes of a large request if it
  // is not refused. The second TakeOut counts the call.
  grpc::Status WhyRefused(const std::string& model, const Line& line,
                          uint64_t bytes) const;
  Lines::iterator LineOf(const RequestSpec& spec);
  void EndIfEmpty(Lines::iterator line);
  void StopWaiting(Open* open);
  Call* TakeOut(OpenCalls::iterator open);
  Call* TakeOut(OpenCalls::iterator open, grpc::StatusCode code);
  // When the line may run a batch; max() if not before something changes.
  Clock::time_point ReadyAt(const Line& line) const;
  // Of the lines that may run a batch now, one of the highest priority, and of
  // these the one whose first call is the oldest. The end if there is no such
  // line. Sets next_ to the time when the next line may run a batch.
  Lines::iterator ReadyLine(Clock::time_point now);
  // Calls whose deadline is up go to `late`.
  Batch TakeBatch(Line* line, Clock::time_point now, std::vector<Call*>* late);

  // Sends all batches that may run now, and unlocks meanwhile.
  void Dispatch(std::unique_lock<std::mutex>* lock);
  // Ends calls, the oldest first, while the oldest one is to end.
  void EndIf(const std::function<bool(const Open&)>& ends,
             const std::function<grpc::Status(bool runs)>& status);

  const Limits limits_;
  LargeRequests* const large_;
  const Send send_;
  std::atomic<uint64_t> last_number_{0};
  std::mutex mutex_;
  OpenCalls open_;
  // By model and signature: those that SetBatching knows, and the others.
  std::map<std::pair<std::string, std::string>, Function> functions_;
  Function other_functions_;
  std::map<std::string, Model> models_;  // with a share of their own
  Model other_models_;
  Lines lines_;
  std::vector<size_t> idle_;  // lanes
  struct OnLane {
    Lines::iterator line;
    size_t calls;
  };
  std::vector<OnLane> on_lanes_;  // of lanes that are not idle
  Clock::time_point next_ = Clock::time_point::max();
  Clock::time_point wakes_ = Clock::time_point::max();  // RunWaiting
  std::condition_variable next_is_sooner_;
  size_t waiting_ = 0;  // calls
  size_t running_ = 0;  // calls, which may have ended
  // So far, of calls that may share batches: batches, and calls in them.
  uint64_t batches_ = 0, batched_ = 0;
  bool draining_ = false;
  Metrics metrics_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_CALL_QUEUE_H_
