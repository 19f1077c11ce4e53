// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/emulated/memory_in_use.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow::multistream {
namespace {

struct EmulatedEvent : public StreamEvent {
  VectorClock known;
  int64_t enqueued = 0;
};

}  // namespace

struct EmulatedStreamGroup::Impl {
  absl::Mutex mu;
  absl::CondVar changed;
  std::deque<std::function<void()>> work ABSL_GUARDED_BY(mu);
  int64_t enqueued ABSL_GUARDED_BY(mu) = 0;
  int64_t completed ABSL_GUARDED_BY(mu) = 0;
  bool paused ABSL_GUARDED_BY(mu) = false;
  // For each other stream, the position up to which this one waited for it.
  std::map<Impl*, int64_t> waited_for ABSL_GUARDED_BY(mu);
  std::atomic<int> threads_that_wait{0};
  bool stopping ABSL_GUARDED_BY(mu) = false;
  std::thread thread;

  void Enqueue(std::function<void()> f) {
    absl::MutexLock lock(&mu);
    work.push_back(std::move(f));
    ++enqueued;
    changed.SignalAll();
  }

  // The number of enqueued items. If the stream is paused, enqueues one that
  // stands for the op that takes long.
  int64_t Tail() {
    absl::MutexLock lock(&mu);
    if (paused) {
      work.push_back([] {});
      ++enqueued;
    }
    return enqueued;
  }

  void WaitFor(Impl* other, int64_t tail) {
    if (other == this) return;
    absl::MutexLock lock(&mu);
    int64_t& waited = waited_for[other];
    waited = std::max(waited, tail);
  }

  void Await(int64_t target, std::atomic<int>* waiting) {
    absl::MutexLock lock(&mu);
    if (completed >= target) return;
    ++*waiting;
    while (completed < target) changed.Wait(&mu);
    --*waiting;
  }

  void Loop() {
    while (true) {
      std::function<void()> next;
      {
        absl::MutexLock lock(&mu);
        while (!stopping && (paused || work.empty())) changed.Wait(&mu);
        if (work.empty()) return;
        next = std::move(work.front());
        work.pop_front();
      }
      next();
      next = nullptr;
      absl::MutexLock lock(&mu);
      ++completed;
      changed.SignalAll();
    }
  }
};

EmulatedStreamGroup::EmulatedStreamGroup(int gpu, int index)
    : StreamGroup(gpu, index), impl_(std::make_unique<Impl>()) {
  impl_->thread = std::thread([this] { impl_->Loop(); });
}

EmulatedStreamGroup::~EmulatedStreamGroup() {
  {
    absl::MutexLock lock(&impl_->mu);
    impl_->stopping = true;
    impl_->changed.SignalAll();
  }
  impl_->thread.join();
}

// Ops run on the host when they are launched, so no wait is needed for order.
// Waits only tell MemoryInUse which memory may be freed.
void EmulatedStreamGroup::WaitFor(StreamGroup* other) {
  MemoryInUse::Get()->Wait(this, MemoryInUse::Get()->Tail(other));
  Impl* impl = static_cast<EmulatedStreamGroup*>(other)->impl_.get();
  impl_->WaitFor(impl, impl->Tail());
}
std::unique_ptr<StreamEvent> EmulatedStreamGroup::NewEvent() {
  return std::make_unique<EmulatedEvent>();
}
void EmulatedStreamGroup::Record(StreamEvent* event) {
  auto* emulated = static_cast<EmulatedEvent*>(event);
  emulated->known = MemoryInUse::Get()->Tail(this);
  emulated->enqueued = impl_->Tail();
}
void EmulatedStreamGroup::WaitForEvent(StreamGroup* other, StreamEvent* event) {
  const auto* emulated = static_cast<EmulatedEvent*>(event);
  MemoryInUse::Get()->Wait(this, emulated->known);
  impl_->WaitFor(static_cast<EmulatedStreamGroup*>(other)->impl_.get(),
                 emulated->enqueued);
}

bool EmulatedStreamGroup::IsCompleted(StreamEvent* event) {
  absl::MutexLock lock(&impl_->mu);
  return !impl_->paused &&
         impl_->completed >= static_cast<EmulatedEvent*>(event)->enqueued;
}

void EmulatedStreamGroup::ThenExecute(std::function<void()> f) {
  impl_->Enqueue([this, f = std::move(f)] {
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
  if (std::this_thread::get_id() == impl_->thread.get_id()) {
    return absl::OkStatus();
  }
  const int64_t target = impl_->Tail();
  std::map<Impl*, int64_t> others;
  {
    absl::MutexLock lock(&impl_->mu);
    others = impl_->waited_for;
  }
  impl_->Await(target, &impl_->threads_that_wait);
  for (const auto& [other, tail] : others) {
    // A callback must not wait for its own stream.
    if (std::this_thread::get_id() != other->thread.get_id()) {
      other->Await(tail, &impl_->threads_that_wait);
    }
  }
  return absl::OkStatus();
}

int EmulatedStreamGroup::threads_that_wait() const {
  return impl_->threads_that_wait;
}

void EmulatedStreamGroup::NoteForeignUse(const void* address) {
  const int64_t number = MemoryInUse::Get()->Add(this, address);
  impl_->Enqueue(
      [address, number] { MemoryInUse::Get()->Remove(address, number); });
}

void EmulatedStreamGroup::Pause() {
  absl::MutexLock lock(&impl_->mu);
  impl_->paused = true;
}

void EmulatedStreamGroup::Resume() {
  absl::MutexLock lock(&impl_->mu);
  impl_->paused = false;
  impl_->changed.SignalAll();
}

}  // namespace tensorflow::multistream
