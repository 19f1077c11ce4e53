/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"

#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/emulated/memory_in_use.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow {
namespace multistream {
namespace {

struct EmulatedEvent : public StreamEvent {
  MemoryInUse::Known known = {};
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
  bool stopping ABSL_GUARDED_BY(mu) = false;
  EmulatedEvent own_event;
  std::thread thread;

  void Enqueue(std::function<void()> f) {
    absl::MutexLock lock(&mu);
    work.push_back(std::move(f));
    ++enqueued;
    changed.SignalAll();
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

// Ops run when they are launched, on the host, so order needs no waits. What is
// waited for only says which memory may be freed.
void EmulatedStreamGroup::WaitFor(StreamGroup* other) {
  MemoryInUse::Get()->Wait(this, MemoryInUse::Get()->Tail(other));
}
void EmulatedStreamGroup::RecordOwnEvent() { Record(&impl_->own_event); }
void EmulatedStreamGroup::WaitForOwnEventOf(StreamGroup* other) {
  WaitForEvent(other,
               &static_cast<EmulatedStreamGroup*>(other)->impl_->own_event);
}
std::unique_ptr<StreamEvent> EmulatedStreamGroup::NewEvent() {
  return std::make_unique<EmulatedEvent>();
}
void EmulatedStreamGroup::Record(StreamEvent* event) {
  auto* emulated = static_cast<EmulatedEvent*>(event);
  emulated->known = MemoryInUse::Get()->Tail(this);
  absl::MutexLock lock(&impl_->mu);
  emulated->enqueued = impl_->enqueued;
}
void EmulatedStreamGroup::WaitForEvent(StreamGroup*, StreamEvent* event) {
  MemoryInUse::Get()->Wait(this, static_cast<EmulatedEvent*>(event)->known);
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

absl::Status EmulatedStreamGroup::CopyToDevice(const void* from, void* to,
                                               size_t bytes) {
  return Copy("host to GPU", from, to, bytes);
}

absl::Status EmulatedStreamGroup::CopyToHost(const void* from, void* to,
                                             size_t bytes) {
  return Copy("GPU to host", from, to, bytes);
}

absl::Status EmulatedStreamGroup::CopyOnDevice(const void* from, void* to,
                                               size_t bytes) {
  return Copy("GPU to GPU", from, to, bytes);
}

absl::Status EmulatedStreamGroup::Copy(const char* direction, const void* from,
                                       void* to, size_t bytes) {
  ScopedTrace trace(TraceKind::kCopy, gpu(), index());
  if (trace.is_on()) trace.Set(bytes, direction);
  std::memcpy(to, from, bytes);
  return absl::OkStatus();
}

absl::Status EmulatedStreamGroup::Synchronize() {
  if (std::this_thread::get_id() == impl_->thread.get_id()) {
    return absl::OkStatus();
  }
  absl::MutexLock lock(&impl_->mu);
  const int64_t target = impl_->enqueued;
  while (impl_->completed < target) impl_->changed.Wait(&impl_->mu);
  return absl::OkStatus();
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

}  // namespace multistream
}  // namespace tensorflow
