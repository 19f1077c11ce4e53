// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What memory of the device does an op of a step use that is being recorded?
// The device asks around the launch, and tells whoever records it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_OP_USES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_OP_USES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace multistream {

// Told of each op that is launched while a step is recorded, on one thread.
class OpWatcher {
 public:
  virtual ~OpWatcher() = default;
  virtual void Begins(const std::string& op) = 0;
  virtual void Launched(const std::string& op, std::vector<MemoryUse> uses) = 0;
};

// Of one op. Uses that nobody can tell from reads count as writes.
class OpUses {
 public:
  // Before it is launched: what it takes. `memory` is the recording's.
  OpUses(const RecordingMemory* memory, const OpKernel* kernel,
         OpKernelContext* context);

  // Afterwards: all of it, with what was `allocated` meanwhile.
  std::vector<MemoryUse> WithMade(OpKernelContext* context,
                                  absl::Span<const MemoryUse> allocated) &&;

 private:
  bool IsOnHost(MemoryType type, const Tensor& tensor) const;
  void Add(Tensor tensor, bool writes);

  const RecordingMemory* const memory_;
  std::vector<MemoryUse> uses_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_OP_USES_H_
