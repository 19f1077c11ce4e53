// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory does an op that is launched read and write? An OpScope tells the
// sanitizer, if there is one.

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

namespace tensorflow {
namespace multistream {

// Whether it is in memory that a group's allocator has told the sanitizer of.
// Of the host's the sanitizer would not learn that it is freed: an emulated GPU
// may have a variable there.
bool IsGroupMemory(const Tensor& tensor);

// Alive while an op is launched on `group`, which has a sanitizer.
class OpAccesses {
 public:
  // `changes_state`: the op may change the variables that it takes.
  OpAccesses(StreamGroup* group, const OpKernel* kernel,
             OpKernelContext* context, const KernelTraits* traits,
             bool changes_state);

  // To be called when the op has been launched, or is done if asynchronous, and
  // before anybody else gets its outputs.
  void Launched();

 private:
  struct Input {
    const char* data = nullptr;
    size_t bytes = 0;
    // If nobody else has a reference to it: the memory that it is all or a part
    // of, as it was allocated.
    const char* block = nullptr;
    size_t block_bytes = 0;
  };
  bool Skips(const Tensor& tensor) const;
  // Nobody else holds this memory of the group any more: its lifetime may as
  // well begin anew.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_ACCESSES_H_
