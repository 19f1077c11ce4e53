// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a piece of a graph (cut.h) run? As an op of the step, on the step's
// group: a recording of the piece is launched, or its nodes run as always. The
// step goes on once the piece is enqueued, as after any op.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_back_off.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow::multistream {

// Thread-safe. Kernels of the op find it by the piece's name, so it must
// outlive the executors that have such a kernel.
class PieceRunner {
 public:
  // `executors[i]` runs the piece's nodes as always on group `i` of `leader`.
  // `back_off` is of the piece's graph.
  PieceRunner(GroupLeader* leader, std::string name, int launches,
              std::vector<std::unique_ptr<Executor>> executors,
              std::unique_ptr<CapturedSteps> captured, PieceBackOff* back_off);
  ~PieceRunner();
  PieceRunner(const PieceRunner&) = delete;
  PieceRunner& operator=(const PieceRunner&) = delete;

  // The runner of the piece with this name, or nullptr.
  static PieceRunner* Find(const std::string& name);

  // Runs the piece as the op that has this context. `done` is called once it is
  // enqueued.
  void Run(OpKernelContext* context, AsyncOpKernel::DoneCallback done);

  // In a fork()ed child: the recordings belong to the parent process.
  void Abandon() { captured_.release(); }

 private:
  GroupLeader* const leader_;
  const std::string name_;
  const int launches_;
  const std::vector<std::unique_ptr<Executor>> executors_;
  std::unique_ptr<CapturedSteps> captured_;
  PieceBackOff* const back_off_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_
