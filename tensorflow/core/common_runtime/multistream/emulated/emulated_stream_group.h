// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a stream of an emulated GPU do? Each group has one; tests can pause
// it. memory_in_use.h tracks the memory that its enqueued ops still use.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
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
  void NoteForeignUse(const void* address) override;

  // For tests: the stream stops completing work, as if an op took long. A
  // stream that waits for this one stops, too, except for its callbacks.
  void Pause();
  void Resume();
  // For tests: how many threads wait in Synchronize.
  int threads_that_wait() const;

 private:
  absl::Status Copy(Direction direction, const void* from, void* to,
                    size_t bytes) override;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_STREAM_GROUP_H_
