// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What is a stream group: its streams, what they can wait for, and its figures?
// Devices, executors and allocators call it; CUDA's and the emulated groups
// implement it.
//
// Three rules make concurrent groups return what one stream would:
//
//   1. Memory of a group is written by that group's stream alone. Free memory
//      may change hands: the new group's stream then waits for the old one's.
//   2. Memory of another group that an op uses is held (holds.h) until the op's
//      stream has completed the op, or its owner's stream waits for it, so that
//      the owner cannot hand it out again too early.
//   3. State that outlives a step (variables) belongs to the leader, and only
//      the leader's stream changes it (variable_order.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_GROUP_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_counters.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"
#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"
#include "tensorflow/core/common_runtime/multistream/stream/reclaimable_memory.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

// A point of a stream that other streams can wait for.
class StreamEvent {
 public:
  virtual ~StreamEvent() = default;
};

// The streams of one group with the allocator whose memory they use. One for
// each group and process; the devices of all sessions share it.
class StreamGroup {
 public:
  StreamGroup(int gpu, int index) : gpu_(gpu), index_(index) {}
  virtual ~StreamGroup() = default;

  int gpu() const { return gpu_; }
  int index() const { return index_; }
  bool is_leader() const { return index_ == 0; }

  // This group's stream waits for all that is enqueued on `other`'s so far.
  virtual void WaitFor(StreamGroup* other) = 0;

  // Records the group's own event at the current end of its stream: who waits
  // for it from now on waits for this point.
  virtual void RecordOwnEvent() = 0;
  // This group's stream waits for `other`'s own event, or a later point.
  virtual void WaitForOwnEventOf(StreamGroup* other) = 0;

  // An event that can be recorded any number of times.
  virtual std::unique_ptr<StreamEvent> NewEvent() = 0;
  // Records `event` at the current end of this group's stream.
  virtual void Record(StreamEvent* event) = 0;
  // This group's stream waits for `other`'s event, recorded before.
  virtual void WaitForEvent(StreamGroup* other, StreamEvent* event) = 0;
  // Whether the stream has completed what was enqueued when this group recorded
  // `event`. False may mean that nobody knows.
  virtual bool IsCompleted(StreamEvent* event) { return false; }

  // Enqueues a host callback: runs `f` on some host thread once the stream has
  // completed all that is enqueued so far.
  virtual void ThenExecute(std::function<void()> f) = 0;

  // Blocks until the stream has completed all that is enqueued so far.
  virtual absl::Status Synchronize() = 0;
  // The same, and the host callbacks of it have run.
  virtual void WaitForCallbacks();

  // Enqueue a copy of `bytes` bytes between pinned memory of the host and the
  // GPU's memory, or within that.
  virtual absl::Status CopyToDevice(const void* from, void* to, size_t bytes);
  virtual absl::Status CopyToHost(const void* from, void* to, size_t bytes);
  virtual absl::Status CopyOnDevice(const void* from, void* to, size_t bytes);

  // Starts to time. The result waits until the stream has completed all that is
  // enqueued by then, and returns how long it took from here to there, in
  // microseconds.
  virtual std::function<double()> StartTimer();

  // What the rest of the runtime calls: the above, seen by the sanitizer.
  void OrderAfter(StreamGroup* other);
  void PublishEvent();
  void OrderAfterPublished(StreamGroup* other);
  void RecordEvent(StreamEvent* event);
  void OrderAfterEvent(StreamGroup* other, StreamEvent* event);
  // The host callback `f`. `host_waits`: what comes after `f` on the host uses
  // what the stream made.
  void WhenCompleted(std::function<void()> f, bool host_waits = false);
  absl::Status Block();
  // Records `event`. The result is for a thread of the host that has nothing
  // else to do: it asks again and again, for at most `limit`, and returns
  // whether the stream has completed what was enqueued until then, so that what
  // comes after it on the host may use what the stream made.
  std::function<bool()> WatchEnd(StreamEvent* event,
                                 std::chrono::microseconds limit);

  // Enqueues on each of the group's streams what tells a profiler's trace which
  // group and stream that is, if a profiler sees them.
  virtual absl::Status MarkForTrace() { return absl::OkStatus(); }

  // nullptr if TF_MULTI_STREAM_SANITIZER is off.
  Sanitizer* sanitizer() const { return sanitizer_; }

  // An op of this group uses memory of another one. Lets an emulated group
  // check rule 2.
  virtual void NoteForeignUse(const void* address) {}

  // As of OutOfMemory.
  void NoteNoMemory(size_t bytes, const std::optional<AllocatorStats>& stats,
                    const std::optional<AllocatorStats>& all = std::nullopt);

  GroupCounters* counters() { return &counters_; }
  ReclaimableMemory* reclaimable() { return &reclaimable_; }

  // Whoever launches a recorded step (capture/record/recording.h), with the
  // copies of its inputs and results.
  absl::Mutex* launch_mu() { return &launch_mu_; }
  // Whoever records one: the recorders of all sessions have the same streams.
  // Before launch_mu.
  absl::Mutex* record_mu() { return &record_mu_; }

  // All that a program may ask, but for the steps.
  StreamGroupStats Stats() const;

  // Of the GPU whose group it is from now on; `sanitizer` may be nullptr.
  void BelongsTo(Sanitizer* sanitizer, OutOfMemory* out_of_memory);

  // The allocator of the group's memory, or nullptr before there is a device.
  Allocator* allocator() const {
    return allocator_.load(std::memory_order_acquire);
  }
  void set_allocator(Allocator* allocator) {
    allocator_.store(allocator, std::memory_order_release);
  }

  // The group's own pinned host memory; nullptr: it has none of its own.
  Allocator* host_allocator() const {
    return host_allocator_.load(std::memory_order_acquire);
  }
  void set_host_allocator(Allocator* allocator) {
    host_allocator_.store(allocator, std::memory_order_release);
  }

  // The lowest group that has the same StreamExecutor.
  int executor() const { return executor_.load(std::memory_order_relaxed); }
  void set_executor(int executor) {
    executor_.store(executor, std::memory_order_relaxed);
  }

  int context() const { return context_.load(std::memory_order_relaxed); }
  void set_context(int context) {
    context_.store(context, std::memory_order_relaxed);
  }

  int priority() const { return priority_.load(std::memory_order_relaxed); }
  void set_priority(int priority) {
    priority_.store(priority, std::memory_order_relaxed);
  }

 private:
  // The group's stream has been told to wait for `other`'s.
  void NoteWait(const StreamGroup* other);

  const int gpu_;
  const int index_;
  Sanitizer* sanitizer_ = nullptr;        // of the GPU
  OutOfMemory* out_of_memory_ = nullptr;  // of the GPU
  std::atomic<Allocator*> allocator_{nullptr};
  std::atomic<Allocator*> host_allocator_{nullptr};
  std::atomic<int> executor_{0};
  std::atomic<int> context_{0};
  std::atomic<int> priority_{0};

  GroupCounters counters_;
  ReclaimableMemory reclaimable_;
  absl::Mutex record_mu_;
  absl::Mutex launch_mu_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_GROUP_H_
