// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What tells an emulated GPU's memory from the host's? To the processor both
// are the same, so that a mistake would only show on a GPU, as a crash. Hence
// kernels of an emulated GPU have the memory types of the GPU's kernels,
// tensors are copied from one memory to the other, and an op that is given
// memory of the wrong kind is an error.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_TWO_MEMORIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_TWO_MEMORIES_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

bool IsEmulatedGpu(const Device& device);

// `params.create_kernel` of an emulated GPU, but kernels have the memory types
// of the GPU's.
MakeKernel MakeKernelWithMemoryTypes(const LocalExecutorParams& params);

// Makes `*own` a copy of `graph`, of an emulated GPU, that sends to itself what
// goes from one memory to the other, if `graph` does not. TensorFlow adds these
// sends to a function that an op calls, by the type of its device.
absl::Status SendBetweenMemories(const LocalExecutorParams& params,
                                 const Graph& graph,
                                 std::unique_ptr<Graph>* own);

// One end of a copy.
struct CopyEnd {
  Device* device;
  DeviceContext* context;
  bool on_host;
};

// Replaces CopyTensor::ViaDMA, which is `stock`. Copies `input` to `*output`
// and calls `done`, if an end is the memory of an emulated GPU; a copy without
// the GPU's context is an error.
void CopyBetweenMemories(const CopyEnd& from, const CopyEnd& to,
                         const Tensor& input, Tensor* output,
                         StatusCallback done,
                         absl::FunctionRef<void(StatusCallback)> stock);

// What copies to and from an emulated GPU, as a GPU's context does. Never
// deleted.
DeviceContext* ContextOfEmulatedGpu();

// Where an emulated GPU's tensors on the host are.
Allocator* HostMemoryOfEmulatedGpus();

// An error if `kernel` would read the GPU's memory on the host or, of the
// memory above, the host's on the GPU.
absl::Status CheckMemoryOfInputs(const OpKernel& kernel,
                                 OpKernelContext* context);

// Call after `kernel` has run. Moves outputs to where the GPU's kernel would
// have them. What a kernel for the CPU has made on the host goes to the GPU.
// What comes into a function `from_eager` ops may go to the host: TensorFlow's
// eager runtime copies nothing between devices that it takes for CPUs.
void MoveOutputs(const OpKernel& kernel, OpKernelContext* context,
                 bool from_eager);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_TWO_MEMORIES_H_
