// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does a recording find a variable that others change? What gives a
// variable a new value often puts it into other memory, and leaves the old one
// to those who still read that: every assignment does, and what adds to a
// variable while a step has its value. A recording reads at one address, so the
// variable is put back there before the next launch, with a copy in the order
// of the leader's stream.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// Of one variable, for the recordings of all groups; they own it. Thread-safe.
class VariableHome : public std::enable_shared_from_this<VariableHome> {
 public:
  // Larger variables have none. Their recordings are made again instead: while
  // the home keeps the memory, a change that could have been in place needs as
  // much again.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  // While the old value is still in use elsewhere, the variable cannot go home.
  // The home is given up if each of so many looks in a row, over so long, has
  // found it in use: one use that lasts, or uses without a gap. Two short uses
  // far apart are two looks.
  static constexpr absl::Duration kLongestUse = absl::Milliseconds(100);
  static constexpr int kLooksAtLeast = 8;

  // A value of at most so many bytes whose memory somebody else has, too, does
  // not become the home: the home is new memory, as a copy costs next to
  // nothing. TensorFlow keeps each scalar that it has made from a number of
  // Python's for good, and a variable that is given one has the same memory.
  static constexpr int64_t kMostCopiedBytes = 4096;

  // The variable's home: the one it has, or a new one. That is where the
  // variable is now, or memory of `allocator`, the leader's, into which PutBack
  // moves the variable. nullptr if it has no value, or too large a one. Nobody
  // may change the variable meanwhile.
  static std::shared_ptr<VariableHome> Of(Var* variable, Allocator* allocator);

  // Whether `value`, the variable's, is at home: has the home's own buffer.
  // The same address is not enough: a stand-in for the variable's memory
  // (changed_variables.h) has that, too, and owns nothing.
  bool Has(const Tensor& value) const {
    return (RootOf(value) == root_ || !IsKept(Rule::kHomeKnowsItsOwnBuffer)) &&
           value.data() == address_ && Suits(value);
  }

  // Ok if the variable is at home, and nobody else has the memory: what writes
  // there then shows to nobody but who reads the variable. Else Unavailable, or
  // Aborted if the home was given up.
  absl::Status CheckIsItsOwn(Var* variable);

  // That of a variable without a home, too.
  static absl::Status InUse();

  // Moves the variable home, if it is elsewhere. Unavailable if the memory is
  // still in use; Aborted if the home was given up: that happens, too, once the
  // variable has another type or shape. `state` is the variable's key. Waits
  // for those who launch what reads or changes it.
  absl::Status PutBack(GpuGroups* gpu, Var* variable,
                       GpuGroups::StateKey state);

 private:
  explicit VariableHome(const Tensor& place)
      : root_(RootOf(place)),
        address_(place.data()),
        type_(place.dtype()),
        shape_(place.shape()),
        place_(place) {}

  static const TensorBuffer* RootOf(const Tensor& value);
  bool Suits(const Tensor& value) const {
    return value.dtype() == type_ && value.shape() == shape_;
  }
  bool IsGivenUp();
  // A look has found the memory in use: whether the home is to be given up.
  bool IsInUseForLong() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A look has found it free.
  void NoteFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { looks_in_use_ = 0; }
  absl::Status PutBackLocked(GpuGroups* gpu, Var* variable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Compared with others' only; it is the home's for as long as place_ is.
  const TensorBuffer* const root_;
  const void* const address_;
  const DataType type_;
  const TensorShape shape_;

  absl::Mutex mu_;
  // While it is the only reference to the memory, only work that is enqueued
  // already still reads that. None if the home was given up.
  std::optional<Tensor> place_ ABSL_GUARDED_BY(mu_);
  // Looks in a row that found the memory in use, and when the first one was.
  int looks_in_use_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time in_use_since_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_
