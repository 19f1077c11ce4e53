// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a step of a CUDA GPU recorded? As a CUDA graph, by stream capture, on
// a device like its group's that has streams of its own. cuda_gpu_factory.h
// makes one for each group. graph_branches.h gives the graph its branches.
//
// The recorder shares its group's StreamExecutor, and so the cuBLAS and cuDNN
// handles with their workspaces. A recording may use these workspaces: it is
// only launched on the group's stream, which orders all their uses.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_RECORDER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_device.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {

// A group's memory, for the group's recorders. What a recorder's stream does
// with memory comes after all work that the group's stream has been given by
// then, which may still use the memory. So it is for scratch memory, which
// TensorFlow's device takes and sets to zero in its first op.
class MemoryOfRecorder : public AllocatorWrapper {
 public:
  MemoryOfRecorder(Allocator* of_group, CudaStreamGroup* group)
      : AllocatorWrapper(of_group), group_(group) {}

  // All recorders of a group have the same stream.
  void set_stream(se::Stream* recorders) { stream_ = recorders; }

  void* AllocateRaw(size_t alignment, size_t bytes) override {
    return AllocateRaw(alignment, bytes, AllocationAttributes());
  }
  void* AllocateRaw(size_t alignment, size_t bytes,
                    const AllocationAttributes& attributes) override;
  std::optional<AllocatorStats> GetStats() override {
    return wrapped()->GetStats();
  }
  bool ClearStats() override { return wrapped()->ClearStats(); }
  void SetSafeFrontier(uint64_t count) override {
    wrapped()->SetSafeFrontier(count);
  }

 private:
  CudaStreamGroup* const group_;
  std::atomic<se::Stream*> stream_{nullptr};
};

class CudaRecorder : public RecordingDevice<CudaDevice>, public Recorder {
 public:
  using RecordingDevice::RecordingDevice;

  // The allocator that the device was made with.
  void set_memory(MemoryOfRecorder* memory) { memory_ = memory; }

  Device* device() override { return this; }
  std::unique_ptr<Recording> NewRecording() override;

 private:
  MemoryOfRecorder* memory_ = nullptr;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_RECORDER_H_
