// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where are the variables that a recording reads and changes, and are they
// there now? A recording contains the variables' addresses; a step may be
// launched as a recording only while each variable has the memory, the type and
// the shape that it had when the step was recorded.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_VARIABLES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/capture/variables/variable_home.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow::multistream {

// The error of a call when a variable is not as the recording needs it.
absl::Status VariableWasChanged();

// The variables of one recording. A call that is passed must hold the lock of
// its variables (UsesVariables), except for PutBack, which takes that lock.
class RecordedVariables {
 public:
  RecordedVariables(const StepInterface& step, GpuGroups* gpu)
      : step_(step), gpu_(gpu) {}

  // Finds the variables' homes, in memory of the leader's allocator. Call once,
  // before the other methods.
  void FindHomes(const CapturedCall& call, Allocator* leaders);
  // FailedPrecondition if the call takes a variable twice that it changes.
  // Calls of one recording take the same variables in the same places.
  absl::Status CheckDistinct(const CapturedCall& call) const;
  // Moves the variables back into their homes.
  absl::Status PutBack(const CapturedCall& call) const;
  // Returns the variables' current values, which stay where they are for as
  // long as the caller has them.
  absl::Status Hold(const CapturedCall& call, std::vector<Tensor>* held) const;
  // Stores the addresses of the values. Unavailable if a value is not in its
  // home.
  absl::Status NotePlaces(const CapturedCall& call,
                          const std::vector<Tensor>& held);
  // Whether the values are at the stored addresses. Aborted if a value has
  // moved and its variable has no home.
  absl::StatusOr<bool> AreInPlace(const std::vector<Tensor>& held) const;
  // Checks that the step alone refers to the memory of each variable that it
  // changes. A piece does by arguments that were read from the variable, too:
  // what a launch needs of them is copied before the piece changes anything.
  // Unavailable if another tensor refers to one; Aborted if the recording can
  // never be launched.
  absl::Status CheckChanged(const CapturedCall& call) const;
  // Whether the variables have the shapes that a padded call expects.
  bool Fit(const Padding& padding) const;
  // Whether a variable has been deleted.
  bool IsOrphaned() const;

 private:
  struct Place {
    const void* address = nullptr;
    DataType type = DT_INVALID;
    TensorShape shape;
    // An op has read rows of the variable. Since then ops that read or change
    // the whole variable copy it, and a recording of before has no such copies.
    bool copied_on_read = false;
  };

  const StepInterface& step_;
  GpuGroups* const gpu_;
  std::vector<Place> places_;
  std::vector<std::shared_ptr<VariableHome>> homes_;  // nullptr for large ones
  std::vector<core::WeakPtr<Var>> used_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_VARIABLES_H_
