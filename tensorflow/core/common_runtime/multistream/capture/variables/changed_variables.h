// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recorded step change variables? A recording writes to the
// addresses that the variables had when it was made. But an op that assigns a
// variable writes in place only while the variable holds the sole reference to
// its memory; else the op gives the variable new memory. So during a run each
// variable holds the sole reference, and values that end up in other memory are
// copied back:
//
//   Take(v), Take(w)   nobody but the ops of this run may use v and w now
//   ... the ops ...    v is changed in place; w's new value is in other memory
//   PutBack()          w's value is copied into its memory, on the same stream
//
// The copies are part of the recording.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_CHANGED_VARIABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_CHANGED_VARIABLES_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// The variables that one run changes. Used on one thread. The variables must
// outlive this object.
class ChangedVariables {
 public:
  // The ops run on `device`.
  explicit ChangedVariables(Device* device) : device_(device) {}
  // Gives the variables their memory back, even after a failed run.
  ~ChangedVariables();
  ChangedVariables(const ChangedVariables&) = delete;
  ChangedVariables& operator=(const ChangedVariables&) = delete;

  // Call once for each variable; it must have a value. Until the end of the run
  // the variable holds a stand-in: a tensor with the same memory and one
  // reference.
  void Take(Var* variable);

  // Returns a copy of `value` if `value` lies in the memory of a taken
  // variable, which later ops may change; else `value`.
  absl::StatusOr<Tensor> Apart(const Tensor& value);

  // Call once, after the ops, and after Apart was called for each of their
  // outputs. FailedPrecondition if a variable now has another type or shape.
  absl::Status PutBack();

 private:
  struct Taken {
    Var* variable;
    Tensor own;  // the variable's tensor outside of the run
  };

  bool IsOfVariable(const Tensor& value) const;
  absl::Status Copy(const Tensor& from, Tensor* to);

  Device* const device_;
  std::vector<Taken> taken_;
};

// Values of variables before recording, which runs ops that change them.
class SavedVariables {
 public:
  SavedVariables(StreamGroup* group, Allocator* allocator)
      : group_(group), allocator_(allocator) {}

  // `value` must keep the memory until Restore.
  absl::Status Save(const Tensor& value);
  absl::Status Restore();

 private:
  StreamGroup* const group_;
  Allocator* const allocator_;
  std::vector<std::pair<void*, Tensor>> saved_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_CHANGED_VARIABLES_H_
