// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/call_queue.h"

#include <google/protobuf/io/coded_stream.h>

#include <sstream>

namespace front {
namespace {

using grpc::Status;
using grpc::StatusCode;

// As RequestMemory (request_memory.py): small requests are always taken.
constexpr uint64_t kSmallBytes = 1 << 16;
constexpr uint64_t kLargeRequests = 16;
// gRPC cancels a call when its deadline is up by gRPC's clock, which can be a
// moment before ours.
constexpr std::chrono::milliseconds kClocksDiffer(100);
// The longest name of a model (server_options.py).
constexpr uint32_t kLongestName = 100;

// The model that a PredictRequest names; empty if the name does not come first.
std::string ModelOf(const grpc::ByteBuffer& request) {
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok() || slices.empty()) return "";
  google::protobuf::io::CodedInputStream in(slices[0].begin(),
                                            static_cast<int>(slices[0].size()));
  constexpr uint32_t kFirstField = 1 << 3 | 2;  // model_spec, and its name
  uint32_t size = 0;
  std::string name;
  if (in.ReadTag() != kFirstField || !in.ReadVarint32(&size) ||
      in.ReadTag() != kFirstField || !in.ReadVarint32(&size) ||
      size > kLongestName || !in.ReadString(&name, static_cast<int>(size))) {
    return "";
  }
  return name;
}

std::string TextOf(const grpc::ByteBuffer& body) {
  grpc::Slice text;
  if (!body.DumpToSingleSlice(&text).ok()) return "";
  return {reinterpret_cast<const char*>(text.begin()), text.size()};
}

double SecondsSince(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

Status ShuttingDown() {
  return {StatusCode::UNAVAILABLE, "the server is shutting down"};
}

Status DeadlineIsUp(bool runs) {
  return {StatusCode::DEADLINE_EXCEEDED,
          runs ? "the deadline was up while the call was running"
               : "the deadline was up while the call was waiting for a thread: "
                 "it was not run"};
}

}  // namespace

CallQueue::CallQueue(const Limits& limits, Metrics metrics)
    : limits_(limits), metrics_(std::move(metrics)) {}

Status CallQueue::WhyRefused(uint64_t bytes) const {
  if (draining_) return ShuttingDown();
  if (waiting_.size() + running_ >= limits_.running + limits_.waiting) {
    return {StatusCode::RESOURCE_EXHAUSTED,
            "the server is full: " + std::to_string(limits_.running) +
                " calls run (--threads) and " +
                std::to_string(limits_.waiting) +
                " may wait (--queue). Try again later."};
  }
  const uint64_t most = kLargeRequests * limits_.bytes_of_request;
  if (bytes > 0 && large_bytes_ + bytes > most) {
    return {StatusCode::RESOURCE_EXHAUSTED,
            "the requests that are being handled have " +
                std::to_string(large_bytes_) + " bytes, and " +
                std::to_string(bytes) + " more are above " +
                std::to_string(most) + " (" + std::to_string(kLargeRequests) +
                " times --max-request-mb). Try again later."};
  }
  return Status::OK;
}

void CallQueue::Add(uint64_t number, Call* call, grpc::ByteBuffer request) {
  const Clock::time_point now = Clock::now();
  const uint64_t size = request.Length();
  std::string model = ModelOf(request);
  Status refused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t bytes = size > kSmallBytes ? size : 0;
    refused = WhyRefused(bytes);
    if (refused.ok()) {
      large_bytes_ += bytes;
      waiting_.push_back(number);
      open_.emplace(
          number, Open{call, std::move(request), std::move(model), now, bytes});
      added_.notify_one();
      return;
    }
    metrics_.Answered(model, refused.error_code(), 0);
  }
  call->Fail(std::move(refused));
}

Call* CallQueue::TakeOut(OpenCalls::iterator open) {
  Call* const call = open->second.call;
  if (!open->second.runs) waiting_.remove(open->first);
  large_bytes_ -= open->second.bytes;
  open_.erase(open);
  return call;
}

Call* CallQueue::TakeOut(OpenCalls::iterator open, StatusCode code) {
  metrics_.Answered(open->second.model, code,
                    SecondsSince(open->second.arrived));
  return TakeOut(open);
}

void CallQueue::Cancelled(uint64_t number) {
  Call* call = nullptr;
  Status status(StatusCode::CANCELLED, "the client cancelled the call");
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto open = open_.find(number);
    if (open == open_.end()) return;
    if (Clock::now() >= open->second.call->deadline() - kClocksDiffer) {
      status = DeadlineIsUp(open->second.runs);
    }
    call = TakeOut(open, status.error_code());
  }
  call->Fail(std::move(status));
}

CallQueue::Taken CallQueue::Take() {
  for (;;) {
    Call* late = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      added_.wait(lock, [&] { return !waiting_.empty(); });
      const auto open = open_.find(waiting_.front());
      if (Clock::now() < open->second.call->deadline()) {
        waiting_.pop_front();
        open->second.runs = true;
        ++running_;
        Taken taken = {open->first, {}};
        taken.request.Swap(&open->second.request);  // a move would copy it
        return taken;
      }
      late = TakeOut(open, StatusCode::DEADLINE_EXCEEDED);
    }
    late->Fail(DeadlineIsUp(false));
  }
}

void CallQueue::Answered(const Taken& taken, StatusCode code,
                         grpc::ByteBuffer body) {
  Call* call = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    const auto open = open_.find(taken.number);
    if (open == open_.end()) return;
    call = TakeOut(open, code);
  }
  if (code == StatusCode::OK) {
    call->Answer(std::move(body));
  } else {
    call->Fail({code, TextOf(body)});
  }
}

void CallQueue::NotPlain(Taken taken) {
  Call* call = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    const auto open = open_.find(taken.number);
    if (open == open_.end()) return;
    call = TakeOut(open);
  }
  call->AskPython(std::move(taken.request));
}

void CallQueue::EndLateCalls() {
  EndIf(
      [this](const Open& open) {
        return SecondsSince(open.arrived) >= limits_.seconds;
      },
      DeadlineIsUp);
}

void CallQueue::Drain() {
  std::lock_guard<std::mutex> lock(mutex_);
  draining_ = true;
}

void CallQueue::Close() {
  Drain();
  EndIf([](const Open&) { return true; }, [](bool) { return ShuttingDown(); });
}

void CallQueue::EndIf(const std::function<bool(const Open&)>& ends,
                      const std::function<Status(bool runs)>& status) {
  for (;;) {
    Call* call = nullptr;
    Status why;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      const auto first = open_.begin();
      if (first == open_.end() || !ends(first->second)) return;
      why = status(first->second.runs);
      call = TakeOut(first, why.error_code());
    }
    call->Fail(std::move(why));
  }
}

std::string CallQueue::Json() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::ostringstream out;
  out << "\"running\": " << running_ << ", \"waiting\": " << waiting_.size()
      << ", \"open\": " << open_.size() << ", \"answers\": " << metrics_.Json();
  return out.str();
}

}  // namespace front
