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
// memory. A KnownVariable refers to the memory, so whatever changes the
// variable gives it other memory. Two kinds of variables are changed otherwise,
// and are never known: reference variables, which have no handle, and variables
// of which an op has read rows (copy_on_read_mode).
//
// No op may be between its look at the references and its launch when a
// KnownVariable is made. Ops hold the variable's mutex from the look to the
// launch, some of them shared, so the maker (know_variable_op.cc) holds the
// mutex alone. Recorded steps are excluded by VariableOrder, for which the
// maker is an op that changes the variable.
//
// A recorded step must be the only one that refers to the memory of its
// variables. It calls Forget, after which the variable is no longer known.

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
  // Of a value, and of the allocation that it is a part of. A KnownVariable
  // keeps the memory until Python reads the variable again.
  static constexpr int64_t kMostBytes = 64;
  static constexpr size_t kMostAllocated = 4096;

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
