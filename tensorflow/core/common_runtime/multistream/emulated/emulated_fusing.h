// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does an emulated GPU launch one kernel for many elementwise ops
// (capture/fuse/fused_ops.h)? It runs all ops again, and undoes what an op of
// the kernel has written. The kernel's program runs when its last op has run.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_FUSING_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_FUSING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"

namespace tensorflow::multistream {

// Watches one repeat.
class EmulatedFusing : public OpWatcher {
 public:
  // `recorded`: the ops of which `fused` was made. `op_of_call`: for each op
  // that is run, its index in them, or -1.
  EmulatedFusing(const std::vector<RecordedOp>& recorded, const FusedOps& fused,
                 const std::vector<int>& op_of_call)
      : recorded_(recorded),
        fused_(fused),
        op_of_call_(op_of_call),
        calls_(fused) {}

  // An error if the ops were not those of the kernels.
  const absl::Status& status() const { return status_; }

  void Begins(const LaunchedOp& op) override;
  void Launched(LaunchedOp op) override;

 private:
  // The op of the current call if it is one of a kernel, else -1.
  int Fused() const;

  void Save(uint64_t begin, size_t bytes) {
    before_[begin] = std::string(reinterpret_cast<const char*>(begin), bytes);
  }

  const std::vector<RecordedOp>& recorded_;
  const FusedOps& fused_;
  const std::vector<int>& op_of_call_;
  FusedCalls calls_;
  size_t call_ = 0;
  // What was in memory before the op, by address: in its operands, and where it
  // put its result and made others when it was recorded. Not launched on a GPU,
  // the op would change nothing there, and its kernel may still read it.
  std::map<uint64_t, std::string> before_;
  absl::Status status_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_FUSING_H_
