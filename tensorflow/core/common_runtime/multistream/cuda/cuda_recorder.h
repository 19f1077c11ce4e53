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

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_device.h"

namespace tensorflow::multistream {

class CudaRecorder : public RecordingDevice<CudaDevice>, public Recorder {
 public:
  using RecordingDevice::RecordingDevice;

  Device* device() override { return this; }
  std::unique_ptr<Recording> NewRecording() override;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CUDA_RECORDER_H_
