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
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_stats.h"
#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"
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

  // `tensors` more of another group's memory, `bytes` in all, are held for this
  // one, or fewer.
  void NoteHeld(int64_t tensors, int64_t bytes);

  // `steps` more of the group's steps wait for a thread to launch their ops, or
  // fewer.
  void NoteStepsWaiting(int steps) {
    steps_waiting_.fetch_add(steps, std::memory_order_relaxed);
  }
  // One of them has waited for so long, for a thread or for a lock of the
  // driver.
  void NoteLaunchWait(int64_t nanos);

  // A recorded step was launched.
  void NoteReplay(bool with_branches) {
    replays_.fetch_add(1, std::memory_order_relaxed);
    if (with_branches) branched_.fetch_add(1, std::memory_order_relaxed);
  }
  // Who launched one has seen its end.
  void NotePolled() { polled_.fetch_add(1, std::memory_order_relaxed); }
  void NoteVerified() { verified_.fetch_add(1, std::memory_order_relaxed); }
  // There are so many recordings of the group's steps more, or fewer.
  void NoteRecordings(int recordings, int64_t bytes);
  // One took so long to make, and takes so much of CUDA's pool while it runs.
  void NoteNewRecording(int64_t nanos, int64_t workspace_bytes);

  // Who has recordings of the group's steps, and their memory, which a step
  // that finds none may need more.
  class RecordingOwner {
   public:
    // Drops those of `group`. Their memory comes back once the group's stream
    // has completed what uses it. Called by who allocates, with any locks.
    virtual void GiveBack(StreamGroup* group) = 0;

   protected:
    ~RecordingOwner() = default;
  };
  void AddRecordingOwner(RecordingOwner* owner);
  void RemoveRecordingOwner(RecordingOwner* owner);
  // Whether recordings have memory of the group: also those that have been
  // dropped, until it is back.
  bool HasRecordings() const {
    return recordings_with_memory_.load(std::memory_order_acquire) > 0;
  }
  void GiveBackRecordings();

  // A member of whatever has memory of a recording: it ends after that memory.
  class HasMemory {
   public:
    explicit HasMemory(StreamGroup* group) : group_(group) {
      group_->recordings_with_memory_.fetch_add(1, std::memory_order_acq_rel);
    }
    ~HasMemory() {
      group_->recordings_with_memory_.fetch_sub(1, std::memory_order_acq_rel);
    }
    HasMemory(const HasMemory&) = delete;
    HasMemory& operator=(const HasMemory&) = delete;

   private:
    StreamGroup* const group_;
  };

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

  std::atomic<int64_t> steps_waiting_{0};
  std::atomic<int64_t> longest_launch_wait_{0};  // nanoseconds
  std::atomic<int64_t> waits_{0};
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> tensors_held_{0};
  std::atomic<int64_t> bytes_held_{0};
  std::atomic<int64_t> peak_bytes_held_{0};

  absl::Mutex record_mu_;
  absl::Mutex launch_mu_;
  absl::Mutex owners_mu_;
  std::vector<RecordingOwner*> owners_ ABSL_GUARDED_BY(owners_mu_);
  std::atomic<int64_t> replays_{0};
  std::atomic<int64_t> branched_{0};
  std::atomic<int64_t> polled_{0};
  std::atomic<int64_t> verified_{0};
  std::atomic<int64_t> recordings_made_{0};
  std::atomic<int64_t> recordings_{0};
  std::atomic<int64_t> recordings_with_memory_{0};
  std::atomic<int64_t> recording_bytes_{0};
  std::atomic<int64_t> longest_recording_{0};  // nanoseconds
  std::atomic<int64_t> recording_workspace_{0};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_STREAM_GROUP_H_
