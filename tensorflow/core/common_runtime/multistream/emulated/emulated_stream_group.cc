// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow::multistream {
namespace {

struct EmulatedEvent : public StreamEvent {
  int64_t enqueued = 0;
};

}  // namespace

void EmulatedStreamGroup::Enqueue(std::function<void()> f) {
  absl::MutexLock lock(&mu_);
  work_.push_back(std::move(f));
  ++enqueued_;
  changed_.SignalAll();
}

int64_t EmulatedStreamGroup::Tail() {
  absl::MutexLock lock(&mu_);
  if (paused_) {
    work_.push_back([] {});
    ++enqueued_;
  }
  return enqueued_;
}

void EmulatedStreamGroup::NoteWaitFor(StreamGroup* other, int64_t tail) {
  if (other == this) return;
  absl::MutexLock lock(&mu_);
  int64_t& waited = waited_for_[static_cast<EmulatedStreamGroup*>(other)];
  waited = std::max(waited, tail);
}

void EmulatedStreamGroup::Await(int64_t target, EmulatedStreamGroup* waiter) {
  absl::MutexLock lock(&mu_);
  if (completed_ >= target) return;
  ++waiter->threads_that_wait_;
  while (completed_ < target) changed_.Wait(&mu_);
  --waiter->threads_that_wait_;
}

void EmulatedStreamGroup::Loop() {
  while (true) {
    std::function<void()> next;
    {
      absl::MutexLock lock(&mu_);
      while (!stopping_ && (paused_ || work_.empty())) changed_.Wait(&mu_);
      if (work_.empty()) return;
      next = std::move(work_.front());
      work_.pop_front();
    }
    next();
    next = nullptr;
    absl::MutexLock lock(&mu_);
    ++completed_;
    changed_.SignalAll();
  }
}

EmulatedStreamGroup::EmulatedStreamGroup(int gpu, int index)
    : StreamGroup(gpu, index), thread_([this] { Loop(); }) {}

EmulatedStreamGroup::~EmulatedStreamGroup() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

// Ops run on the host when they are launched, so no wait is needed for order.
// Whether one is missing, or memory is freed too early, the sanitizer says.
void EmulatedStreamGroup::WaitFor(StreamGroup* other) {
  NoteWaitFor(other, static_cast<EmulatedStreamGroup*>(other)->Tail());
}
std::unique_ptr<StreamEvent> EmulatedStreamGroup::NewEvent() {
  return std::make_unique<EmulatedEvent>();
}
void EmulatedStreamGroup::Record(StreamEvent* event) {
  static_cast<EmulatedEvent*>(event)->enqueued = Tail();
}
void EmulatedStreamGroup::WaitForEvent(StreamGroup* other, StreamEvent* event) {
  NoteWaitFor(other, static_cast<EmulatedEvent*>(event)->enqueued);
}

bool EmulatedStreamGroup::IsCompleted(StreamEvent* event) {
  absl::MutexLock lock(&mu_);
  return !paused_ && completed_ >= static_cast<EmulatedEvent*>(event)->enqueued;
}

void EmulatedStreamGroup::ThenExecute(std::function<void()> f) {
  Enqueue([this, f = std::move(f)] {
    ScopedTrace trace(TraceKind::kCallback, gpu(), index());
    if (trace.is_on()) trace.Set(0, "host callback");
    f();
  });
}

absl::Status EmulatedStreamGroup::Copy(Direction direction, const void* from,
                                       void* to, size_t bytes) {
  ScopedTrace trace(TraceKind::kCopy, gpu(), index());
  if (trace.is_on()) {
    trace.Set(bytes, direction == Direction::kToDevice ? "host to GPU"
                     : direction == Direction::kToHost ? "GPU to host"
                                                       : "GPU to GPU");
  }
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedStreamGroup::Synchronize() {
  if (std::this_thread::get_id() == thread_.get_id()) {
    return absl::OkStatus();
  }
  const int64_t target = Tail();
  std::map<EmulatedStreamGroup*, int64_t> others;
  {
    absl::MutexLock lock(&mu_);
    others = waited_for_;
  }
  Await(target, this);
  for (const auto& [other, tail] : others) {
    // A callback must not wait for its own stream.
    if (std::this_thread::get_id() != other->thread_.get_id()) {
      other->Await(tail, this);
    }
  }
  return absl::OkStatus();
}

void EmulatedStreamGroup::Pause() {
  absl::MutexLock lock(&mu_);
  paused_ = true;
}

void EmulatedStreamGroup::Resume() {
  absl::MutexLock lock(&mu_);
  paused_ = false;
  changed_.SignalAll();
}

}  // namespace tensorflow::multistream
