// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Is a variable's value still the one that Python read? A read waits for the
// GPU, and tf-keras reads the number of steps per execution before each step
// of `fit`. So Python (eager/unchanged_variables.py) keeps the value, and asks.
//
//   thread 1   know v (a tensor of it) ............ still? yes    still? no
//   thread 2                            v.assign(2)
//
// Ops write to a variable in place only while nothing else refers to its
// memory. A KnownVariable refers to it, so whatever changes the variable gives
// it other memory. Except in reference variables, which have no handle, and
// after an op has read rows of the variable (copy_on_read_mode): such variables
// are not known. The op that makes a KnownVariable counts as one that changes
// the variable, so that no other op is between its look at the references and
// its launch (VariableOrder).
//
// A recorded step needs the memory of its variables for itself, and has it:
// Forget drops the reference, and the variable is no longer known.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_KNOWN_VARIABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_KNOWN_VARIABLE_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow::multistream {

// Thread-safe.
class KnownVariable {
 public:
  // Larger ones take longer to copy than to wait for, and twice the memory.
  static constexpr int64_t kMostBytes = 64;

  // `value`: the variable's.
  KnownVariable(core::RefCountPtr<Var> variable, Tensor value);
  ~KnownVariable();
  KnownVariable(const KnownVariable&) = delete;
  KnownVariable& operator=(const KnownVariable&) = delete;

  // Whether a variable with that value can be known. The caller has the lock.
  static bool CanBe(const Var& variable, const Tensor& value);

  bool IsStill() const;

  // Drops all references of KnownVariables to the memory of `value`. Returns
  // whether there was one. May be called with the lock of a variable.
  static bool Forget(const Tensor& value);

 private:
  const core::RefCountPtr<Var> variable_;
  mutable absl::Mutex mu_;
  Tensor value_ ABSL_GUARDED_BY(mu_);  // without memory: forgotten
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_KNOWN_VARIABLE_H_
