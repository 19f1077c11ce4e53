// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory must be held while an op is launched, and for later ops of its
// step: other groups', lists' and variables'? An OpScope finds it before the
// launch, and makes the holds enqueued after it (holds.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_

#include <vector>

#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_launch.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

class OpHolds {
 public:
  // Holds the inputs that are other groups' memory. `op` outlives this.
  explicit OpHolds(const OpLaunch& op);

  // Inputs in other groups' memory.
  const std::vector<int>& foreign() const { return foreign_; }
  // Inputs whose memory the op would take for its output if nobody held it.
  const std::vector<int>& taken_over() const { return taken_over_; }

  // For an op that reads variables: a handle keeps a reference-counted variable
  // alive.
  void HoldHandles();

  // For an op that changes variables, in a step whose ops have groups of their
  // own: drops what the step holds of them, or the op would have to copy.
  void DropVariables();

  // Holds to the step's end what later ops use without having it for an input:
  // the elements of a list (of tensors, in a variant) that comes from outside
  // the step, an argument or a variable's value; and variables' memory that an
  // op passes on. `reads`: the op reads variables.
  void HoldForLaterOps(bool reads);

  // All work of the op that uses what is held is enqueued.
  void Enqueued() { holds_.Enqueued(); }

  // For an asynchronous op, whose work is enqueued later.
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

// Adds `tensor` if its memory is another group's than that of `holds`.
void HoldIfForeign(StreamGroup* group, const Tensor& tensor, Holds* holds);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_HOLDS_H_
