// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow::multistream {
namespace {

// Few, because each poll may call the driver.
constexpr int kLooksBetweenYields = 16;

// Tells the sanitizer that the host waited for a stream to pass `position`.
void HostGoesOn(Sanitizer* sanitizer, const Position& position) {
  sanitizer->Completed(position);
  sanitizer->HostSynchronized(position);
}

EventId IdOf(const void* event) { return reinterpret_cast<EventId>(event); }

}  // namespace

// A group's host callbacks run in the order in which they were enqueued.
void StreamGroup::WaitForCallbacks() {
  absl::Notification completed;
  ThenExecute([&completed] { completed.Notify(); });
  completed.WaitForNotification();
}

void StreamGroup::NoteWait(const StreamGroup* other) {
  counters_.NoteWait();
  ScopedTrace trace(TraceKind::kWait, gpu_, index_);
  if (trace.is_on()) trace.Set(other->index_, "wait");
}

void StreamGroup::OrderAfter(StreamGroup* other) {
  if (TakeTestFault(TestFault::kDropWait)) return;
  WaitFor(other);
  other->counters_.NoteEvent();
  NoteWait(other);
  if (sanitizer_ != nullptr) sanitizer_->WaitForTail(index_, other->index_);
}

void StreamGroup::RecordEvent(StreamEvent* event) {
  Record(event);
  counters_.NoteEvent();
  if (sanitizer_ != nullptr) sanitizer_->Record(IdOf(event), index_);
}

void StreamGroup::OrderAfterEvent(StreamGroup* other, StreamEvent* event) {
  if (TakeTestFault(TestFault::kDropWait)) return;
  WaitForEvent(other, event);
  NoteWait(other);
  if (sanitizer_ != nullptr) sanitizer_->Wait(index_, IdOf(event));
}

void StreamGroup::WhenCompleted(std::function<void()> f, bool host_waits) {
  if (sanitizer_ == nullptr) {
    ThenExecute(std::move(f));
    return;
  }
  const Position tail = sanitizer_->Tail(index_);
  ThenExecute([sanitizer = sanitizer_, tail, host_waits, f = std::move(f)] {
    sanitizer->Completed(tail);
    if (host_waits) sanitizer->HostSynchronized(tail);
    f();
  });
}

std::function<bool()> StreamGroup::WatchEnd(StreamEvent* event,
                                            std::chrono::microseconds limit) {
  Record(event);
  const auto poll = [this, event, limit] {
    const auto look = [this, event] { return IsCompleted(event); };
    return Spin(kLooksBetweenYields, look) ||
           YieldUntil(std::chrono::nanoseconds(limit).count(),
                      kLooksBetweenYields, look);
  };
  if (sanitizer_ == nullptr) return poll;
  return [sanitizer = sanitizer_, tail = sanitizer_->Tail(index_), poll] {
    if (!poll()) return false;
    HostGoesOn(sanitizer, tail);
    return true;
  };
}

std::function<double()> StreamGroup::StartTimer() {
  return [this, started = std::chrono::steady_clock::now()] {
    Synchronize().IgnoreError();
    return std::chrono::duration<double, std::micro>(
               std::chrono::steady_clock::now() - started)
        .count();
  };
}

absl::Status StreamGroup::Block() {
  if (sanitizer_ == nullptr) return Synchronize();
  const Position tail = sanitizer_->Tail(index_);
  absl::Status status = Synchronize();
  if (status.ok()) HostGoesOn(sanitizer_, tail);
  return status;
}

void StreamGroup::BelongsTo(Sanitizer* sanitizer, OutOfMemory* out_of_memory) {
  sanitizer_ = sanitizer;
  out_of_memory_ = out_of_memory;
}

void StreamGroup::NoteNoMemory(size_t bytes,
                               const std::optional<AllocatorStats>& stats,
                               const std::optional<AllocatorStats>& all) {
  if (out_of_memory_ == nullptr) return;  // not part of a GPU: no steps
  out_of_memory_->Note(index_, bytes, stats, all);
}

StreamGroupStats StreamGroup::Stats() const {
  StreamGroupStats stats;
  stats.gpu = gpu();
  stats.group = index();
  if (Allocator* of_group = allocator()) {
    if (std::optional<AllocatorStats> memory = of_group->GetStats()) {
      stats.bytes_in_use = memory->bytes_in_use;
      stats.peak_bytes_in_use = memory->peak_bytes_in_use;
      stats.bytes_limit = memory->bytes_limit.value_or(0);
      stats.bytes_reserved = memory->pool_bytes.value_or(0);
    }
  }
  if (Allocator* of_group = host_allocator()) {
    if (std::optional<AllocatorStats> memory = of_group->GetStats()) {
      stats.host_bytes_in_use = memory->bytes_in_use;
      stats.peak_host_bytes_in_use = memory->peak_bytes_in_use;
    }
  }
  stats.executor = executor();
  stats.context = context();
  stats.priority = priority();
  counters_.CopyTo(&stats);
  return stats;
}

}  // namespace tensorflow::multistream
