// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What is a stream group: its streams, the points that they can wait for, and
// its statistics? Devices, executors and allocators call this interface; CUDA
// groups and emulated groups implement it.
//
// With these three rules concurrent groups compute the results of one stream:
//
//   1. Only a group's own stream writes the group's memory. Free memory may
//      move to another group, whose stream then waits for the old owner's.
//   2. If an op uses another group's memory, the memory is held (holds.h) until
//      the op's stream has completed the op, or the owner's stream waits for
//      the op. So the owner cannot reuse the memory too early.
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
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_counters.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"
#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"
#include "tensorflow/core/common_runtime/multistream/stream/reclaimable_memory.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {

// A point of a stream that other streams can wait for.
class StreamEvent {
 public:
  virtual ~StreamEvent() = default;
};

// The streams of one group, with the allocator of their memory. One object for
// each group in a process; the devices of all sessions share it.
class StreamGroup {
 public:
  StreamGroup(int gpu, int index) : gpu_(gpu), index_(index) {}
  virtual ~StreamGroup() = default;

  int gpu() const { return gpu_; }
  int index() const { return index_; }
  bool is_leader() const { return index_ == 0; }

  // This group's stream waits for all that is enqueued on `other`'s stream.
  virtual void WaitFor(StreamGroup* other) = 0;

  // An event that can be recorded any number of times.
  virtual std::unique_ptr<StreamEvent> NewEvent() = 0;
  // Records `event` at the current end of this group's stream.
  virtual void Record(StreamEvent* event) = 0;
  // This group's stream waits for `event`, which `other` has recorded.
  virtual void WaitForEvent(StreamGroup* other, StreamEvent* event) = 0;
  // Whether the stream has completed all that was enqueued before this group
  // recorded `event`. False may also mean: unknown.
  virtual bool IsCompleted(StreamEvent* event) { return false; }

  // Enqueues a host callback: runs `f` on some host thread once the stream has
  // completed all that is enqueued so far.
  virtual void ThenExecute(std::function<void()> f) = 0;

  // Blocks until the stream has completed all that is enqueued so far.
  virtual absl::Status Synchronize() = 0;
  // Like Synchronize, and waits until the stream's host callbacks have run.
  virtual void WaitForCallbacks();

  // Enqueue a copy between pinned host memory and GPU memory, or within GPU
  // memory.
  absl::Status CopyToDevice(const void* from, void* to, size_t bytes) {
    return Copy(Direction::kToDevice, from, to, bytes);
  }
  absl::Status CopyToHost(const void* from, void* to, size_t bytes) {
    return Copy(Direction::kToHost, from, to, bytes);
  }
  absl::Status CopyOnDevice(const void* from, void* to, size_t bytes) {
    return Copy(Direction::kOnDevice, from, to, bytes);
  }

  // Starts a timer. The returned function blocks until the stream has completed
  // all that is enqueued when the function is called. It returns the
  // microseconds from StartTimer to that point.
  virtual std::function<double()> StartTimer();

  // The rest of the runtime calls these versions of the functions above: they
  // also tell the sanitizer.
  void OrderAfter(StreamGroup* other);
  void RecordEvent(StreamEvent* event);
  void OrderAfterEvent(StreamGroup* other, StreamEvent* event);
  // Enqueues the host callback `f`. `host_waits`: host code that runs after `f`
  // uses results of the stream.
  void WhenCompleted(std::function<void()> f, bool host_waits = false);
  absl::Status Block();
  // Records `event`. The returned function polls for at most `limit`, on a host
  // thread that has nothing else to do. It returns whether the stream has
  // completed all work before the event. If true, host code that runs
  // afterwards may use the stream's results.
  std::function<bool()> WatchEnd(StreamEvent* event,
                                 std::chrono::microseconds limit);

  // If a profiler is attached, enqueues a marker on each of the group's streams
  // that names the group and the stream in the profiler's trace.
  virtual absl::Status MarkForTrace() { return absl::OkStatus(); }

  // nullptr if TF_MULTI_STREAM_SANITIZER is off.
  Sanitizer* sanitizer() const { return sanitizer_; }

  // See OutOfMemory::Note.
  void NoteNoMemory(size_t bytes, const std::optional<AllocatorStats>& stats,
                    const std::optional<AllocatorStats>& all = std::nullopt);

  GroupCounters* counters() { return &counters_; }
  ReclaimableMemory* reclaimable() { return &reclaimable_; }

  // Held while a recorded step (capture/record/recording.h) and the copies of
  // its inputs and results are launched.
  absl::Mutex* launch_mu() { return &launch_mu_; }
  // Held while a step is recorded, because the recorders of all sessions share
  // the group's streams. Taken before launch_mu.
  absl::Mutex* record_mu() { return &record_mu_; }

  // All statistics of the group, except the counts of steps (GpuGroups).
  StreamGroupStats Stats() const;

  // Sets the GPU's sanitizer, which may be nullptr, and OutOfMemory.
  void BelongsTo(Sanitizer* sanitizer, OutOfMemory* out_of_memory);

  // The allocator of the group's memory; nullptr before a device exists.
  Allocator* allocator() const {
    return allocator_.load(std::memory_order_acquire);
  }
  void set_allocator(Allocator* allocator) {
    allocator_.store(allocator, std::memory_order_release);
  }

  // Allocator of the group's own pinned host memory; nullptr if there is none.
  Allocator* host_allocator() const {
    return host_allocator_.load(std::memory_order_acquire);
  }
  void set_host_allocator(Allocator* allocator) {
    host_allocator_.store(allocator, std::memory_order_release);
  }

  // Index of the lowest group that uses the same StreamExecutor.
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

 protected:
  enum class Direction { kToDevice, kToHost, kOnDevice };

 private:
  virtual absl::Status Copy(Direction direction, const void* from, void* to,
                            size_t bytes) {
    return absl::UnimplementedError("copies of recorded steps");
  }

  // Counts and traces a wait of the group's stream for `other`'s.
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

// Which group is this thread launching an op on? An OpScope sets it. Code that
// TensorFlow calls from inside an op reads it: allocators, and the table of
// convolutions' runners.
class GroupOnThread : public OnThread<GroupOnThread, StreamGroup*> {
 public:
  using OnThread::OnThread;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_GROUP_H_
