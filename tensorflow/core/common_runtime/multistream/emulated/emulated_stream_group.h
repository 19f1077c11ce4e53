// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a stream of an emulated GPU do? Each group has one; tests can pause
// it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {

// A stream that completes work on a thread of its own, some time after the host
// has enqueued it.
class EmulatedStreamGroup : public StreamGroup {
 public:
  EmulatedStreamGroup(int gpu, int index);
  ~EmulatedStreamGroup() override;

  void WaitFor(StreamGroup* other) override;
  std::unique_ptr<StreamEvent> NewEvent() override;
  void Record(StreamEvent* event) override;
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override;
  bool IsCompleted(StreamEvent* event) override;
  void ThenExecute(std::function<void()> f) override;
  absl::Status Synchronize() override;
  void WaitForCallbacks() override { Synchronize().IgnoreError(); }

  // For tests: the stream stops completing work, as if an op took long. A
  // stream that waits for this one stops, too, except for its callbacks.
  void Pause();
  void Resume();
  // For tests: how many threads wait in Synchronize.
  int threads_that_wait() const { return threads_that_wait_; }

 private:
  absl::Status Copy(Direction direction, const void* from, void* to,
                    size_t bytes) override;
  void Enqueue(std::function<void()> f);
  // The number of enqueued items. If the stream is paused, enqueues one that
  // stands for the op that takes long.
  int64_t Tail();
  // Notes that this stream waits for `other`'s up to `tail`.
  void NoteWaitFor(StreamGroup* other, int64_t tail);
  // Blocks until the stream has completed `target` items. Counts the wait as
  // one in Synchronize of `waiter`.
  void Await(int64_t target, EmulatedStreamGroup* waiter);
  void Loop();

  absl::Mutex mu_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mu_);
  int64_t enqueued_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t completed_ ABSL_GUARDED_BY(mu_) = 0;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  // For each other stream, the position up to which this one waited for it.
  std::map<EmulatedStreamGroup*, int64_t> waited_for_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> threads_that_wait_{0};
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_
