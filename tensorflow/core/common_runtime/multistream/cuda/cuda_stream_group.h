// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do the streams of a CUDA GPU's group record events, and wait for events
// of other groups? With the StreamExecutor streams of the group's device.
// cuda_gpu_factory.h makes the groups; other code sees a StreamGroup.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_STREAM_GROUP_H_

#include <array>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/gpu/gpu_device.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {

class CudaStreamGroup : public StreamGroup {
 public:
  using StreamGroup::StreamGroup;

  // To be called with each device made for the group. All have the same
  // streams, so only the first call changes anything.
  absl::Status Bind(BaseGPUDevice* device);

  void WaitFor(StreamGroup* other) override;
  std::unique_ptr<StreamEvent> NewEvent() override;
  void Record(StreamEvent* event) override;
  void WaitForEvent(StreamGroup* recorder, StreamEvent* event) override;
  bool IsCompleted(StreamEvent* event) override;
  void ThenExecute(std::function<void()> f) override;
  absl::Status Synchronize() override;
  std::function<double()> StartTimer() override;

  // Two memsets on each stream: of kMarkBytes, and of 4 * (1 + kMarkStreams *
  // group + stream), in the order of `streams_`. tf.cuda.trace reads them.
  absl::Status MarkForTrace() override;
  static constexpr int kMarkBytes = 4 * 20261;
  static constexpr int kMarkStreams = 4;

  // The compute stream; nullptr before Bind.
  se::Stream* stream() const { return stream_; }

 private:
  absl::Status Copy(Direction direction, const void* from, void* to,
                    size_t bytes) override;

  // Ends the process: without the wait an op would read data that is not
  // written yet. CUDA refuses a wait only when its context is lost, and then
  // every later call fails too.
  void Check(const absl::Status& status);

  absl::Mutex mu_;
  // Set once, by Bind, before any step.
  se::StreamExecutor* executor_ = nullptr;
  se::Stream* stream_ = nullptr;
  // The compute stream, and the copy streams from the host, to the host and on
  // the GPU; null where the copy stream is the compute stream.
  std::array<se::Stream*, kMarkStreams> streams_ = {};
  EventMgr* events_ = nullptr;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_STREAM_GROUP_H_
