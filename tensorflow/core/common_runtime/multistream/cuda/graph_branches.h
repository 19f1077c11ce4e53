// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a CUDA graph get branches? A step is captured twice. The first
// capture, a chain of all ops, tells which nodes of the graph belong to which
// op, and which memory they use: the tensors that TensorFlow gives the op, and
// what its kernels' parameters point to. In the second capture the nodes of
// each op depend only on the ops that it has to wait for (recorded_order.h).
// The second capture also launches one kernel in place of many elementwise
// ops (capture/fuse/fused_ops.h), whose own launches are left out.
//
// The addresses that a launch uses are in its parameters, or in data that is
// copied to the GPU for that launch. There is no other place for them, since in
// any program kernels of two streams may run at the same time.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {

// The captured ops in order. Many op calls launch nothing.
struct CapturedOps {
  std::vector<RecordedOp> ops;  // that launch something
  struct Call {
    int op = -1;             // index into `ops`; -1: launched nothing
    bool is_no_ops = false;  // launched between two ops, source unknown
  };
  std::vector<Call> calls;
};

// Watches the first capture.
class CapturesOps : public OpWatcher {
 public:
  // `parameters`: replaced only by tests.
  explicit CapturesOps(CUstream stream,
                       decltype(&ParametersOf) parameters = ParametersOf)
      : stream_(stream), parameters_(parameters) {}

  void Begins(const LaunchedOp& op) override;
  void Launched(LaunchedOp op) override;

  // Call before the capture ends. `memory` is the recording's.
  absl::StatusOr<CapturedOps> Finish(const RecordingMemory& memory);

 private:
  // Parameter values that may be addresses, outside the memory that the op is
  // known to use.
  struct Unknown {
    int op;
    uint64_t value;
  };
  void Add(LaunchedOp launched, bool is_no_ops);
  absl::StatusOr<std::vector<CUgraphNode>> NewNodes();
  absl::Status AddNode(CUgraphNode node, RecordedOp* op);
  absl::Status AddKernel(CUgraphNode node, RecordedOp* op);
  void AddValue(uint64_t value, RecordedOp* op);

  const CUstream stream_;
  const decltype(&ParametersOf) parameters_;
  absl::Status status_;
  absl::flat_hash_set<CUgraphNode> known_;
  CapturedOps captured_;
  std::vector<std::string> names_;  // of the ops that launch something
  std::vector<Unknown> unknown_;
  struct Copied {
    int op;
    const void* from;  // on the host
    size_t bytes;
  };
  std::vector<Copied> copied_;
  // For the op being added: its allocations from the graph's pool, and how many
  // of them are not freed yet.
  std::vector<MemoryUse> pool_memory_;
  int pool_allocations_ = 0;
  // Of ops that have launched nothing.
  std::vector<Allocation> made_;
  std::vector<size_t> freed_;
};

// Launches a kernel for many elementwise ops, on the stream that captures.
class FusedLauncher {
 public:
  virtual ~FusedLauncher() = default;
  virtual absl::Status Launch(const FusedProgram& program,
                              absl::Span<const FusedCall> calls) = 0;
};

// Watches a second capture, and gives the graph its branches, and its kernels
// for many elementwise ops.
class BranchesOps : public OpWatcher {
 public:
  // `fused` may be null. `waits` are of the ops as launched (FusedOps).
  // `launcher` may be null if `fused` is.
  BranchesOps(CUstream stream, const CapturedOps& captured,
              const FusedOps* fused, FusedLauncher* launcher,
              std::vector<std::vector<int>> waits);

  // Call before the capture ends. An error if the step differs from the first
  // capture, or if the driver cannot make branches.
  absl::Status Finish();

  void Begins(const LaunchedOp& op) override;
  void Launched(LaunchedOp op) override;

 private:
  void Before();
  void After(std::optional<ElementwiseOp> elementwise);
  bool IsNextNoOps() const;
  bool IsFused(int op) const { return fused_ && fused_->kernel_of[op] >= 0; }
  int LaunchedAs(int op) const { return fused_ ? fused_->launched_as[op] : op; }
  absl::Status WaitFor(int launched);
  absl::Status LaunchFused(const FusedKernel& kernel, int launched);
  absl::StatusOr<size_t> CountNodes(std::vector<CUgraphNode>* ends);

  const CUstream stream_;
  const CapturedOps& captured_;
  const FusedOps* const fused_;
  FusedLauncher* const launcher_;
  const std::vector<std::vector<int>> waits_;
  absl::Status status_;
  std::optional<FusedCalls> calls_of_kernels_;
  std::optional<SkippedLaunches> skipped_;      // while an op of one runs
  std::vector<std::vector<CUgraphNode>> ends_;  // last nodes of each launch
  size_t call_ = 0;
  size_t nodes_ = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
