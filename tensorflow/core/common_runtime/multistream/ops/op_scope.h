// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What must happen around launching one op on a device with stream groups? A
// GroupDevice makes an OpScope for each launch. Its parts answer one question
// each:
//
//   op_launch.h        which op, on which group, in which step?
//   op_holds.h         what memory is held for it, and for later ops?
//   op_state.h         what variables does it read or change?
//   op_input_copies.h  which inputs must be copies in its own group's memory?
//   op_accesses.h       what is the sanitizer told?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_accesses.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_launch.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_on_thread.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow {
namespace multistream {

// Alive while an op is launched on `group`'s device. Locks what state it
// touches from Enter to its end; what comes before may wait for memory.
//
// An asynchronous op keeps state locked until it is done, as a variable's own
// mutex is by the kernels that launch on another thread (XlaLaunch, if it has
// collectives). So none that waits for another op may take a lock: calls
// and what receives are no readers, and a reference to strings, which the ops
// of queues and barriers take, is none to a variable.
class OpScope {
 public:
  // `traits`: if the step's ops have groups of their own.
  OpScope(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
          OpKernelContext* context, const OpTraits* traits = nullptr);
  ~OpScope();

  // An op that may keep an input in a variable must not keep memory of another
  // group (rule 3); one that adds begins with the first input whose memory it
  // may take for the sum, and must begin where it would on one stream. Replaces
  // such inputs by copies in `allocator`'s memory for the time of the scope.
  // Synchronous ops only.
  absl::Status CopyForeignInputs(Allocator* allocator,
                                 const CopyOnStream& copy);

  // True if CopyForeignInputs has something to do.
  bool must_copy_inputs() const {
    return (state_.keeps_inputs() && !holds_.foreign().empty()) ||
           !holds_.taken_over().empty();
  }

  // To be called when the inputs are what the op will see.
  void Enter();

  // To be called when a synchronous op has computed.
  void Launched();

  // What to tell the sanitizer, if there is one, when an asynchronous op is
  // done.
  const std::optional<OpAccesses>& log() const { return log_; }

  // For an asynchronous op, after Enter: a function to be called when the op is
  // done, which has enqueued its last work by then and perhaps not before. What
  // the scope would do at its end waits for that: state stays locked, and what
  // the op holds is pending.
  std::function<void()> TakeEnd();

 private:
  const GroupOnThread on_thread_;
  const OpLaunch op_;
  OpHolds holds_;
  OpState state_;
  OpInputCopies copies_;
  std::optional<OpAccesses> log_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_
