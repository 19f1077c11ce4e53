// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which elementwise ops of a recorded step become one kernel? Keras's Adam
// launches twelve small kernels for each variable, a layer normalization and
// its gradient more than twenty; nearly all of their time is the start of a
// kernel. Ops are joined in two directions:
//
//   a cluster   ops that hand values to each other, all of one size, are a
//               program (fused_program.h): vertical fusion. Values that nothing
//               else uses are not written to memory.
//   a kernel    clusters with the same program are one launch, whose blocks
//               work on one cluster each: horizontal fusion.
//
//   recorded   g1  m1-  m1*  m1+=  g2  m2-  m2*  m2+=  x
//   launched   g1                  g2            K     x
//
// A kernel takes the place of its last op. So no other op between its first and
// its last op may have to wait for one of its ops. That includes ops that get
// memory which one of its ops was the last to use: such memory is kept apart,
// so that no other op gets it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_OPS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"

namespace tensorflow::multistream {

struct FusedCluster {
  std::vector<int> ops;         // in recorded order
  std::vector<bool> is_stored;  // for each op: other ops use its result
};

struct FusedKernel {
  std::vector<FusedCluster> clusters;
  FusedProgram program;
  int last = -1;  // the op whose place it takes
};

struct FusedOps {
  std::vector<FusedKernel> kernels;
  std::vector<int> kernel_of;  // for each recorded op, or -1
  // Allocations, by number, that must not share memory with others.
  std::vector<size_t> apart;
  // The ops as they are launched, a kernel as one op, and which of them each
  // recorded op is: -1 for all ops of a kernel but its last.
  std::vector<RecordedOp> launched;
  std::vector<int> launched_as;
  int saved = 0;  // launches

  std::string Summary() const;  // for the log
};

// Finds the kernels of `ops`, which are in recorded order.
FusedOps FusedOpsOf(const std::vector<RecordedOp>& ops);

// Collects a kernel's calls while a step with fused ops is run again, in which
// the ops have other addresses.
class FusedCalls {
 public:
  explicit FusedCalls(const FusedOps& fused)
      : fused_(fused), found_(fused.kernel_of.size()) {}

  // Call for each op of a kernel, after it has run. Returns the kernel if `op`
  // is its last op, else null.
  const FusedKernel* Add(int op, std::optional<ElementwiseOp> elementwise);

  // The calls of a kernel of which all ops have been added. An error if an op
  // is not the one it was.
  absl::StatusOr<std::vector<FusedCall>> CallsOf(
      const FusedKernel& kernel) const;

 private:
  const FusedOps& fused_;
  std::vector<std::optional<ElementwiseOp>> found_;  // by op
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_OPS_H_
