// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/call_queue.h"

#include <sstream>

namespace front {
namespace {

using grpc::Status;
using grpc::StatusCode;

// gRPC cancels a call when its deadline is up by gRPC's clock, which can be a
// moment before ours.
constexpr std::chrono::milliseconds kClocksDiffer(100);
constexpr char kDefaultSignature[] = "serving_default";
constexpr Batching kNoBatches;
// After a batch of which the engine has made a step for each call.
constexpr int kAlone = 100;  // batches

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

CallQueue::CallQueue(const Limits& limits, LargeRequests* large,
                     Metrics metrics, Send send)
    : limits_(limits),
      large_(large),
      send_(std::move(send)),
      on_lanes_(limits.lanes),
      metrics_(std::move(metrics)) {
  for (size_t lane = limits.lanes; lane > 0; --lane) idle_.push_back(lane - 1);
}

const Batching& CallQueue::Line::batching() const {
  return function->alone > 0 ? kNoBatches : function->batching;
}

bool CallQueue::Line::MayRun() const {
  return function->running < batching().most_running &&
         model->running < model->share.most_running;
}

Status CallQueue::WhyRefused(const std::string& model, const Line& line,
                             uint64_t bytes) const {
  if (draining_) return ShuttingDown();
  const bool runs_at_once =
      !idle_.empty() && line.waiting.empty() && line.MayRun() &&
      (line.running == 0 || line.batching().most_rows == 1);
  if (!runs_at_once && line.model->waiting >= line.model->share.most_waiting) {
    return {StatusCode::RESOURCE_EXHAUSTED,
            "as many calls of model " + model + " wait as may, " +
                std::to_string(line.model->share.most_waiting) +
                " (--share). Try again later."};
  }
  if (!runs_at_once && waiting_ >= limits_.waiting) {
    const std::string runs =
        idle_.empty()
            ? std::to_string(limits_.lanes) + " calls run (--threads) and "
            : "as many steps of the signature or the model run as "
              "may (--batch-steps, --share), and ";
    return {StatusCode::RESOURCE_EXHAUSTED,
            "the server is full: " + runs + std::to_string(limits_.waiting) +
                " may wait (--queue). Try again later."};
  }
  const std::string too_large = bytes > 0 ? large_->Take(bytes) : "";
  if (!too_large.empty()) return {StatusCode::RESOURCE_EXHAUSTED, too_large};
  return Status::OK;
}

CallQueue::Lines::iterator CallQueue::LineOf(const RequestSpec& spec) {
  const auto model = models_.find(spec.model);
  const auto function =
      functions_.find({spec.model, spec.signature.empty() ? kDefaultSignature
                                                          : spec.signature});
  Line line = {&other_models_, &other_functions_};
  std::pair<std::string, std::string> key;
  if (model != models_.end()) {
    line.model = &model->second;
    key.first = spec.model;
  }
  if (function != functions_.end()) {
    line.function = &function->second;
    key = {spec.model, spec.bytes};
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
    const uint64_t bytes = size > LargeRequests::kSmallBytes ? size : 0;
    const Lines::iterator line = LineOf(spec);
    refused = WhyRefused(spec.model, line->second, bytes);
    if (refused.ok()) {
      const auto place =
          line->second.waiting.insert(line->second.waiting.end(), number);
      line->second.rows += spec.rows;
      ++line->second.model->waiting;
      ++waiting_;
      open_.emplace(number,
                    Open{call, std::move(request), std::move(spec.model),
                         spec.rows, now, bytes, line, place});
      Dispatch(&lock);
      return;
    }
    EndIfEmpty(line);
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
  large_->Return(open->second.bytes);
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
  if (line.waiting.empty() || !line.MayRun()) return Clock::time_point::max();
  const Batching& batching = line.batching();
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
  const int64_t most_rows = line->batching().most_rows;
  while (!line->waiting.empty()) {
    const auto found = open_.find(line->waiting.front());
    Open& open = found->second;
    const bool is_late = now >= open.call->deadline();
    if (!is_late && !batch.empty() && rows + open.rows > most_rows) {
      break;
    }
    StopWaiting(&open);
    open.runs = true;
    if (is_late) {
      late->push_back(TakeOut(found, StatusCode::DEADLINE_EXCEEDED));
      continue;
    }
    rows += open.rows;
    batch.push_back({found->first, {}, open.bytes});
    open.bytes = 0;
    batch.back().request.Swap(&open.request);  // a move would copy it
    if (rows >= most_rows) break;
  }
  return batch;
}

void CallQueue::Dispatch(std::unique_lock<std::mutex>* lock) {
  while (!idle_.empty()) {
    const Clock::time_point now = Clock::now();
    const Lines::iterator found = ReadyLine(now);
    if (found == lines_.end()) break;
    Line& line = found->second;
    std::vector<Call*> late;
    Batch batch = TakeBatch(&line, now, &late);
    const size_t lane = idle_.back();
    if (batch.empty()) {
      EndIfEmpty(found);
    } else {
      running_ += batch.size();
      if (line.function->batching.most_rows > 1) {
        ++batches_;
        batched_ += batch.size();
      }
      if (line.function->alone > 0) --line.function->alone;
      ++line.running;
      ++line.function->running;
      ++line.model->running;
      on_lanes_[lane] = {found, batch.size()};
      idle_.pop_back();
    }
    lock->unlock();
    for (Call* call : late) call->Fail(DeadlineIsUp(false));
    if (!batch.empty()) send_(lane, std::move(batch));
    lock->lock();
  }
  if (next_ < wakes_) next_is_sooner_.notify_one();
}

void CallQueue::Idle(size_t lane, size_t steps) {
  std::unique_lock<std::mutex> lock(mutex_);
  const OnLane ended = on_lanes_[lane];
  Line& line = ended.line->second;
  --line.running;
  --line.function->running;
  --line.model->running;
  // More steps than calls: one has failed, and its calls were made again.
  if (ended.calls > 1 && steps == ended.calls) line.function->alone = kAlone;
  EndIfEmpty(ended.line);
  idle_.push_back(lane);
  Dispatch(&lock);
}

void CallQueue::Answered(const Taken& taken, StatusCode code,
                         grpc::ByteBuffer body) {
  Call* call = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    large_->Return(taken.bytes);
    const auto open = open_.find(taken.number);
    if (open == open_.end()) return;
    const bool counts =
        code != StatusCode::OK || !open->second.call->CountsItsAnswer();
    call = counts ? TakeOut(open, code) : TakeOut(open);
  }
  if (code == StatusCode::OK) {
    call->Answer(std::move(body));
  } else {
    call->Fail({code, TextOf(body)});
  }
}

void CallQueue::Count(const std::string& model, StatusCode code,
                      double seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  metrics_.Answered(model, code, seconds);
}

void CallQueue::NotPlain(Taken taken) {
  Call* call = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --running_;
    large_->Return(taken.bytes);
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
  functions_[{model, signature}].batching = batching;
  Dispatch(&lock);
}

void CallQueue::SetShare(const std::string& name, const Share& share) {
  std::unique_lock<std::mutex> lock(mutex_);
  Model& model = models_[name];
  model.share = share;
  for (auto& [key, line] : lines_) {
    if (key.first != name || line.model == &model) continue;
    other_models_.waiting -= line.waiting.size();
    other_models_.running -= line.running;
    model.waiting += line.waiting.size();
    model.running += line.running;
    line.model = &model;
  }
  Dispatch(&lock);
}

void CallQueue::SetModels(const std::vector<std::string>& names) {
  std::lock_guard<std::mutex> lock(mutex_);
  metrics_.SetModels(names);
}

void CallQueue::RunWaiting() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wakes_ = next_;
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
