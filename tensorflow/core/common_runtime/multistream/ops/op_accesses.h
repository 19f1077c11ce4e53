// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory does a launched op read and write? An OpScope reports it to the
// sanitizer, if there is one. The sanitizer must hear only of sure accesses, as
// each one may be an error; OpUses (capture/record/recording_device.h) counts
// possible accesses too, as each one is a wait.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_ACCESSES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_ACCESSES_H_

#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// Whether `tensor` is in memory of a group, which the group's allocator reports
// to the sanitizer. Host memory, where an emulated GPU may have a variable, is
// left out: the sanitizer would not learn when it is freed.
bool IsGroupMemory(const Tensor& tensor);

// Alive while an op is launched on `group`, which has a sanitizer.
class OpAccesses {
 public:
  // `changes_state`: the op may change its input variables.
  OpAccesses(StreamGroup* group, const OpKernel* kernel,
             OpKernelContext* context, const KernelTraits* traits,
             bool changes_state);

  // Call when the op has been launched (if asynchronous: is done), before any
  // other op gets its outputs.
  void Launched();

 private:
  struct Input {
    const char* data = nullptr;
    size_t bytes = 0;
    // The whole allocation that contains the input. Set only if the op has the
    // only reference to it.
    const char* block = nullptr;
    size_t block_bytes = 0;
  };
  bool Skips(const Tensor& tensor) const;
  // Call when the op has the only reference to this memory of its group. Starts
  // a new lifetime of the memory, as if it were allocated now.
  void Renew(const void* address, size_t bytes) const;
  void LogVariables() const;

  StreamGroup* const group_;
  Sanitizer* const sanitizer_;
  const OpKernel* const kernel_;
  OpKernelContext* const context_;
  const KernelTraits* const traits_;
  const bool changes_state_;
  std::vector<Input> inputs_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_ACCESSES_H_
