// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/call_queue.h"

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
constexpr char kDefaultSignature[] = "serving_default";
constexpr Batching kNoBatches;

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

CallQueue::CallQueue(const Limits& limits, Metrics metrics, Send send)
    : limits_(limits),
      send_(std::move(send)),
      line_of_(limits.lanes),
      metrics_(std::move(metrics)) {
  for (size_t lane = limits.lanes; lane > 0; --lane) idle_.push_back(lane - 1);
}

Status CallQueue::WhyRefused(const std::string& name, uint64_t bytes) const {
  if (draining_) return ShuttingDown();
  if (const auto found = models_.find(name); found != models_.end()) {
    const Model& model = found->second;
    const bool runs_at_once = !idle_.empty() && model.waiting == 0 &&
                              model.running < model.share.most_running;
    if (model.waiting >= model.share.most_waiting && !runs_at_once) {
      return {StatusCode::RESOURCE_EXHAUSTED,
              "as many calls of model " + name + " wait as may, " +
                  std::to_string(model.share.most_waiting) +
                  " (--share). Try again later."};
    }
  }
  if (waiting_ >= limits_.waiting + idle_.size()) {
    return {StatusCode::RESOURCE_EXHAUSTED,
            "the server is full: " + std::to_string(limits_.lanes) +
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

CallQueue::Lines::iterator CallQueue::LineOf(const RequestSpec& spec) {
  const auto model = models_.find(spec.model);
  const bool has_share = model != models_.end();
  Line line = {has_share ? &model->second : &others_, &kNoBatches};
  std::pair<std::string, std::string> key;
  const auto found =
      batching_.find({spec.model, spec.signature.empty() ? kDefaultSignature
                                                         : spec.signature});
  if (found != batching_.end()) {
    line.batching = &found->second;
    key = {spec.model, spec.bytes};
  } else if (has_share) {
    key.first = spec.model;
  }
  return lines_.try_emplace(std::move(key), std::move(line)).first;
}

void CallQueue::EndIfEmpty(Lines::iterator line) {
  if (line->second.waiting.empty() && line->second.running == 0) {
    lines_.erase(line);
  }
}

void CallQueue::Add(uint64_t number, Call* call, RequestSpec spec,
                    grpc::ByteBuffer request) {
  const Clock::time_point now = Clock::now();
  const uint64_t size = request.Length();
  Status refused;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t bytes = size > kSmallBytes ? size : 0;
    refused = WhyRefused(spec.model, bytes);
    if (refused.ok()) {
      const Lines::iterator line = LineOf(spec);
      const auto place =
          line->second.waiting.insert(line->second.waiting.end(), number);
      line->second.rows += spec.rows;
      ++line->second.model->waiting;
      ++waiting_;
      large_bytes_ += bytes;
      open_.emplace(number,
                    Open{call, std::move(request), std::move(spec.model),
                         spec.rows, now, bytes, line, place});
      Dispatch(&lock);
      return;
    }
    metrics_.Answered(spec.model, refused.error_code(), 0);
  }
  call->Fail(std::move(refused));
}

void CallQueue::StopWaiting(Open* open) {
  Line& line = open->line->second;
  line.waiting.erase(open->place);
  line.rows -= open->rows;
  --line.model->waiting;
  --waiting_;
}

Call* CallQueue::TakeOut(OpenCalls::iterator open) {
  Call* const call = open->second.call;
  if (!open->second.runs) {
    StopWaiting(&open->second);
    EndIfEmpty(open->second.line);
  }
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

Clock::time_point CallQueue::ReadyAt(const Line& line) const {
  const Batching& batching = *line.batching;
  if (line.waiting.empty() || line.running >= batching.most_running ||
      line.model->running >= line.model->share.most_running) {
    return Clock::time_point::max();
  }
  if (line.running == 0 || line.rows >= batching.most_rows) {
    return Clock::time_point::min();
  }
  return open_.at(line.waiting.front()).arrived + batching.wait;
}

CallQueue::Lines::iterator CallQueue::ReadyLine(Clock::time_point now) {
  Lines::iterator ready = lines_.end();
  const auto goes_first = [](const Line& a, const Line& b) {
    const int one = a.model->share.priority, other = b.model->share.priority;
    return one != other ? one > other : a.waiting.front() < b.waiting.front();
  };
  next_ = Clock::time_point::max();
  for (auto line = lines_.begin(); line != lines_.end(); ++line) {
    const Clock::time_point at = ReadyAt(line->second);
    if (at > now) {
      next_ = std::min(next_, at);
    } else if (ready == lines_.end() ||
               goes_first(line->second, ready->second)) {
      ready = line;
    }
  }
  return ready;
}

CallQueue::Batch CallQueue::TakeBatch(Line* line, Clock::time_point now,
                                      std::vector<Call*>* late) {
  Batch batch;
  int64_t rows = 0;
  while (!line->waiting.empty()) {
    const auto found = open_.find(line->waiting.front());
    Open& open = found->second;
    const bool is_late = now >= open.call->deadline();
    if (!is_late && !batch.empty() &&
        rows + open.rows > line->batching->most_rows) {
      break;
    }
    StopWaiting(&open);
    open.runs = true;
    if (is_late) {
      late->push_back(TakeOut(found, StatusCode::DEADLINE_EXCEEDED));
      continue;
    }
    rows += open.rows;
    batch.push_back({found->first, {}});
    batch.back().request.Swap(&open.request);  // a move would copy it
    if (rows >= line->batching->most_rows) break;
  }
  return batch;
}

void CallQueue::Dispatch(std::unique_lock<std::mutex>* lock) {
  while (!idle_.empty()) {
    const Clock::time_point now = Clock::now();
    const Clock::time_point next = next_;
    const Lines::iterator line = ReadyLine(now);
    if (line == lines_.end()) {
      if (next_ < next) next_is_sooner_.notify_one();
      return;
    }
    std::vector<Call*> late;
    Batch batch = TakeBatch(&line->second, now, &late);
    const size_t lane = idle_.back();
    if (batch.empty()) {
      EndIfEmpty(line);
    } else {
      running_ += batch.size();
      if (line->second.batching->most_rows > 1) {
        ++batches_;
        batched_ += batch.size();
      }
      ++line->second.running;
      ++line->second.model->running;
      line_of_[lane] = line;
      idle_.pop_back();
    }
    lock->unlock();
    for (Call* call : late) call->Fail(DeadlineIsUp(false));
    if (!batch.empty()) send_(lane, std::move(batch));
    lock->lock();
  }
}

void CallQueue::Idle(size_t lane) {
  std::unique_lock<std::mutex> lock(mutex_);
  --line_of_[lane]->second.running;
  --line_of_[lane]->second.model->running;
  EndIfEmpty(line_of_[lane]);
  idle_.push_back(lane);
  Dispatch(&lock);
}

void CallQueue::Answered(uint64_t number, StatusCode code,
                         grpc::ByteBuffer body) {
  Call* call = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    const auto open = open_.find(number);
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

void CallQueue::SetBatching(const std::string& model,
                            const std::string& signature,
                            const Batching& batching) {
  std::unique_lock<std::mutex> lock(mutex_);
  batching_[{model, signature}] = batching;
  Dispatch(&lock);
}

void CallQueue::SetShare(const std::string& model, const Share& share) {
  std::unique_lock<std::mutex> lock(mutex_);
  // Calls that wait or run already stay with the other models.
  models_[model].share = share;
  Dispatch(&lock);
}

void CallQueue::SetModels(const std::vector<std::string>& names) {
  std::lock_guard<std::mutex> lock(mutex_);
  metrics_.SetModels(names);
}

void CallQueue::RunWaiting() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    if (next_ == Clock::time_point::max()) {
      next_is_sooner_.wait(lock);
    } else if (Clock::now() < next_) {
      next_is_sooner_.wait_until(lock, next_);
    } else {
      next_ = Clock::time_point::max();  // if no lane is idle
      Dispatch(&lock);
    }
  }
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
  out << "\"running\": " << running_ << ", \"waiting\": " << waiting_
      << ", \"open\": " << open_.size() << ", \"batches\": " << batches_
      << ", \"batched\": " << batched_ << ", \"answers\": " << metrics_.Json();
  return out.str();
}

}  // namespace front
