// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What must happen around launching one op on a device with stream groups? A
// GroupDevice makes an OpScope for each launch. Its parts answer one question
// each:
//
//   step.h             which op, on which group, in which step?
//   op_holds.h         what memory is held for the op, and for later ops?
//   op_state.h         what variables does the op take, read or change?
//   op_input_copies.h  what is copied before the launch?
//   op_accesses.h      what is the sanitizer told?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_accesses.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_input_copies.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow::multistream {

// Alive while an op is launched on `group`'s device. The state that the op uses
// is locked from Enter to the scope's end, not before, because copies of inputs
// may wait for memory.
//
// An asynchronous op keeps state locked until it is done. Kernels that launch
// on another thread (XlaLaunch with collectives) do the same with a variable's
// mutex. So an op that waits for another op must not take a lock: calls and
// receives do not count as readers, and a reference to strings, as ops of
// queues and barriers take, does not count as a variable.
class OpScope {
 public:
  // `traits`: not null at node level only.
  OpScope(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
          OpKernelContext* context, const OpTraits* traits = nullptr);
  ~OpScope();

  // Replaces inputs by copies in `allocator`'s memory until the scope's end. An
  // op that may keep an input in a variable must not keep memory of another
  // group (rule 3). AddN starts its sum with the first input that it may
  // overwrite; a copy of an input that is held lets AddN add in the order of
  // one stream. Synchronous ops only.
  absl::Status CopyForeignInputs(Allocator* allocator,
                                 const CopyOnStream& copy);

  // True if CopyForeignInputs has something to do.
  bool must_copy_inputs() const {
    return (state_.keeps_inputs() && !holds_.foreign().empty()) ||
           !holds_.taken_over().empty();
  }

  // Call when the inputs are final.
  void Enter();

  // Call after a synchronous op's Compute.
  void Launched();

  // If there is a sanitizer: report to it when an asynchronous op is done.
  const std::optional<OpAccesses>& log() const { return log_; }

  // For an asynchronous op, after Enter. Call the returned function when the op
  // is done, because its last work may be enqueued only then. The function does
  // what the scope's end would do; until then state stays locked and holds stay
  // pending.
  std::function<void()> TakeEnd();

 private:
  const GroupOnThread on_thread_;
  const OpLaunch op_;
  OpHolds holds_;
  OpState state_;
  OpInputCopies copies_;
  std::optional<OpAccesses> log_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_SCOPE_H_
