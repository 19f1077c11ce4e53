// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Calls and lanes for the tests of CallQueue.

#ifndef EXAMPLES_SERVING_FRONT_CALL_QUEUE_FIXTURE_H_
#define EXAMPLES_SERVING_FRONT_CALL_QUEUE_FIXTURE_H_

#include <atomic>
#include <deque>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>

#include "examples/serving/front/call_queue.h"

namespace front {

using grpc::StatusCode;

inline constexpr char kPlain[] =
    "\x0a\x03\x0a\x01m";  // model_spec { name: "m" }

inline grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// Says how it was ended, and how often.
class FakeCall : public Call {
 public:
  void Answer(grpc::ByteBuffer response) override {
    size = response.Length();
    End("answered");
  }
  void Fail(grpc::Status status) override {
    code = status.error_code();
    text = status.error_message();
    End("failed");
  }
  void AskPython(grpc::ByteBuffer request) override {
    size = request.Length();
    End("python");
  }
  Clock::time_point deadline() const override { return deadline_; }
  bool CountsItsAnswer() const override { return counts_itself; }

  std::string how;
  StatusCode code = StatusCode::OK;
  std::string text;
  size_t size = 0;
  std::atomic<int> ends{0};
  bool counts_itself = false;
  Clock::time_point deadline_ = Clock::time_point::max();

 private:
  void End(const char* what) {
    how = what;
    ++ends;
  }
};

// Keeps the batches that the queue sends, as lanes whose engine is slow.
class Lanes {
 public:
  explicit Lanes(const CallQueue::Limits& limits, uint64_t most_bytes = 1 << 20)
      : large_(most_bytes),
        queue(limits, &large_, Metrics({0.1, 1}, {"m"}),
              [this](size_t lane, CallQueue::Batch batch) {
                const std::lock_guard<std::mutex> lock(mutex_);
                sent_.push_back({lane, std::move(batch)});
              }) {}

  // The numbers of the calls on the lanes, a batch's in braces: "{1}{2 3}".
  std::string Sent() {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string text;
    for (const auto& [lane, batch] : sent_) {
      std::string numbers;
      for (const CallQueue::Taken& taken : batch) {
        numbers += (numbers.empty() ? "" : " ") + std::to_string(taken.number);
      }
      text += "{" + numbers + "}";
    }
    return text;
  }
  bool IsIdle() { return Sent().empty(); }

  // The oldest batch on the lanes, or the newest, whose lane is idle then: the
  // engine has made so many steps of the batch.
  CallQueue::Batch End(size_t steps = 1, bool newest = false) {
    std::pair<size_t, CallQueue::Batch> first;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto batch = newest ? std::prev(sent_.end()) : sent_.begin();
      first = std::move(*batch);
      sent_.erase(batch);
    }
    queue.Idle(first.first, steps);
    return std::move(first.second);
  }
  // Ends it with answers.
  void Answer(const std::string& text = "", size_t steps = 1) {
    for (const CallQueue::Taken& taken : End(steps)) {
      queue.Answered(taken, StatusCode::OK, Bytes(text));
    }
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<size_t, CallQueue::Batch>> sent_;
  LargeRequests large_;

 public:
  CallQueue queue;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_CALL_QUEUE_FIXTURE_H_
