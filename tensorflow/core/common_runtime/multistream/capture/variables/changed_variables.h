// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recorded step change variables? A recording writes where they were
// when it was recorded. What gives a variable a new value writes into its
// memory only while nobody else has that; otherwise it makes new memory the
// variable's. So while the ops of one run are launched, each variable has its
// memory to itself, and what they have put elsewhere by the end is copied back:
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

// Of one run, on one thread. The variables must outlive it.
class ChangedVariables {
 public:
  // The ops run on `device`.
  explicit ChangedVariables(Device* device) : device_(device) {}
  // The variables have their memory again, whatever came of the run.
  ~ChangedVariables();
  ChangedVariables(const ChangedVariables&) = delete;
  ChangedVariables& operator=(const ChangedVariables&) = delete;

  // Each once. The variable has a value. It gets a tensor of the same memory
  // that nobody else has.
  void Take(Var* variable);

  // A copy of `value` if it is, or is part of, the memory of one of them, which
  // later ops may change; else `value`.
  absl::StatusOr<Tensor> Apart(const Tensor& value);

  // FailedPrecondition if a variable has got another type or shape. Once, after
  // the ops. What they have made is Apart from the variables by then.
  absl::Status PutBack();

 private:
  struct Taken {
    Var* variable;
    Tensor own;  // what the variable has outside of the run
  };

  bool IsOfVariable(const Tensor& value) const;
  absl::Status Copy(const Tensor& from, Tensor* to);

  Device* const device_;
  std::vector<Taken> taken_;
};

// Variables as they were before ops changed them, to record these.
class SavedVariables {
 public:
  SavedVariables(StreamGroup* group, Allocator* allocator)
      : group_(group), allocator_(allocator) {}

  // `value` is to have the memory until Restore.
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
