// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a CUDA graph get branches? A step is captured twice. The first
// capture, a chain of all ops, tells which nodes of the graph belong to which
// op, and which memory they use: the tensors that TensorFlow gives the op, and
// what its kernels' parameters point to. In the second capture the nodes of
// each op depend only on the ops that it has to wait for (recorded_order.h).
//
// The addresses that a launch uses are in its parameters, or in data that is
// copied to the GPU for that launch. There is no other place for them, since in
// any program kernels of two streams may run at the same time.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
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

  void Begins(const std::string& op) override;
  void Launched(const std::string& op, std::vector<MemoryUse> uses) override;

  // Call before the capture ends. `memory` is the recording's.
  absl::StatusOr<CapturedOps> Finish(const RecordingMemory& memory);

 private:
  // Parameter values that may be addresses, outside the memory that the op is
  // known to use.
  struct Unknown {
    int op;
    uint64_t value;
  };
  void Add(const std::string& name, std::vector<MemoryUse> uses,
           bool is_no_ops);
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
};

// Watches the second capture, and gives the graph its branches.
class BranchesOps : public OpWatcher {
 public:
  BranchesOps(CUstream stream, const CapturedOps& captured,
              std::vector<std::vector<int>> waits);

  // Call before the capture ends. An error if the step differs from the first
  // capture, or if the driver cannot make branches.
  absl::Status Finish();

  void Begins(const std::string& op) override;
  void Launched(const std::string& op, std::vector<MemoryUse> uses) override;

 private:
  void Before();
  void After();
  bool IsNextNoOps() const;
  absl::StatusOr<size_t> CountNodes(std::vector<CUgraphNode>* ends);

  const CUstream stream_;
  const CapturedOps& captured_;
  const std::vector<std::vector<int>> waits_;
  absl::Status status_;
  std::vector<std::vector<CUgraphNode>> ends_;  // last nodes of each op
  size_t call_ = 0;
  size_t nodes_ = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
