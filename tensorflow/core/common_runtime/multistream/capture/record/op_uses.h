// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What device memory does an op use while its step is being recorded? The
// recording device finds out before and after the op's launch, and tells an
// OpWatcher. Possible uses count, as a recording must wait for them; the
// sanitizer hears only of sure accesses, by OpAccesses (ops/op_accesses.h).

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

// The memory uses of one op. A use that may be a write counts as a write.
class OpUses {
 public:
  // Call before the op's launch: notes the inputs. `memory` is the recording's.
  OpUses(const RecordingMemory* memory, const OpKernel* kernel,
         OpKernelContext* context);

  // Call after the launch: returns all uses, including outputs and memory that
  // the op has `allocated`.
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
