// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory must be held while an op is launched, and for later ops of its
// step? Memory of other groups, of lists and of variables. An OpScope adds the
// holds before the launch and marks them enqueued afterwards (holds.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

class OpHolds {
 public:
  // Holds the inputs in other groups' memory. `op` outlives this object.
  explicit OpHolds(const OpLaunch& op);

  // Inputs in other groups' memory.
  const std::vector<int>& foreign() const { return foreign_; }
  // Inputs that the op would overwrite with its output if they were not held.
  const std::vector<int>& taken_over() const { return taken_over_; }

  // For an op that reads variables. Holds the handles, because a handle keeps a
  // reference-counted variable alive.
  void HoldHandles();

  // For an op that changes variables at node level. Drops the step's holds of
  // the variables, because the op would have to copy a held variable.
  void DropVariables();

  // Holds, to the step's end, memory that later ops use although it is none of
  // their inputs. This is the elements of a list (of tensors, in a variant)
  // from outside the step, that is from an argument or a variable; and memory
  // of variables that an op passes on. `reads`: the op reads variables.
  void HoldForLaterOps(bool reads);

  // Call when all work of the op that uses held memory is enqueued.
  void Enqueued() { holds_.Enqueued(); }

  // Hands over the holds of an asynchronous op, whose work is enqueued later.
  Holds Take() { return std::move(holds_); }

 private:
  void FindForeignInputs();
  void Hold(const Tensor& tensor);
  void HoldToEnd(const Tensor& tensor);

  const OpLaunch& op_;
  std::vector<int> foreign_;
  std::vector<int> taken_over_;
  Holds holds_;
};

// Adds `tensor` to `group`'s `holds` if another group owns the memory.
void HoldIfForeign(StreamGroup* group, const Tensor& tensor, Holds* holds);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_
