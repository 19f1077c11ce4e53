// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a CUDA graph get branches? A step is captured twice. The first time,
// one op after the other, tells which nodes of the graph are which op's, and
// what they use: what TensorFlow gives the op, and whatever else the parameters
// of its kernels point to. The second time the stream goes on, for each op,
// where the ops end that it has to wait for (recorded_order.h).
//
// What a launch uses has to be in its parameters, or in what is copied to the
// GPU for it: kernels of two streams, of any program, may run at the same time,
// so there is no other place for it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/op_uses.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {

// What was captured, in order. Of the calls of ops, many launch nothing.
struct CapturedOps {
  std::vector<RecordedOp> ops;  // that launch something
  struct Call {
    int op = -1;             // or none
    bool is_no_ops = false;  // launched between two ops, by nobody knows whom
  };
  std::vector<Call> calls;
};

// Watches the first time.
class CapturesOps : public OpWatcher {
 public:
  // `parameters`: of graph_memory.h, but for tests.
  explicit CapturesOps(CUstream stream,
                       decltype(&ParametersOf) parameters = ParametersOf)
      : stream_(stream), parameters_(parameters) {}

  void Begins(const std::string& op) override;
  void Launched(const std::string& op, std::vector<MemoryUse> uses) override;

  // Before the capture ends. `memory` is what the step was given.
  absl::StatusOr<CapturedOps> Finish(const RecordingMemory& memory);

 private:
  // Values of parameters that are no memory of their op, as far as it is known.
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
  // Of the op that is added: what it takes from the pool, and how much of that
  // it has not freed.
  std::vector<MemoryUse> pool_memory_;
  int pool_allocations_ = 0;
};

// Watches the second time, and gives the graph its branches.
class BranchesOps : public OpWatcher {
 public:
  BranchesOps(CUstream stream, const CapturedOps& captured,
              std::vector<std::vector<int>> waits);

  // Before the capture ends. An error: it is not what it was the first time, or
  // the driver cannot do it.
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
  std::vector<std::vector<CUgraphNode>> ends_;  // of each op
  size_t call_ = 0;
  size_t nodes_ = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GRAPH_BRANCHES_H_
