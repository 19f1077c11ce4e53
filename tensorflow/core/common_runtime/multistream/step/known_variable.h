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

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_KNOWN_VARIABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_KNOWN_VARIABLE_H_

#include <cstdint>
#include <utility>

#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow::multistream {

class KnownVariable {
 public:
  // Larger ones take longer to copy than to wait for, and twice the memory.
  static constexpr int64_t kMostBytes = 64;

  // `value`: the variable's.
  KnownVariable(core::RefCountPtr<Var> variable, Tensor value)
      : variable_(std::move(variable)), value_(std::move(value)) {}

  // Whether a variable with that value can be known. The caller has the lock.
  static bool CanBe(const Var& variable, const Tensor& value);

  // Thread-safe.
  bool IsStill() const;

 private:
  const core::RefCountPtr<Var> variable_;
  const Tensor value_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_KNOWN_VARIABLE_H_
