// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does a recording find a variable that other steps change? A new value
// often lies in other memory, and the old memory stays with its readers: every
// assignment does this, and so does adding to a variable while a step holds the
// value. A recording reads at one address, so before the next launch the
// variable is copied back there, in the order of the leader's stream.
//
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

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// The home of one variable, shared and owned by the recordings of all groups.
// Thread-safe.
class VariableHome : public std::enable_shared_from_this<VariableHome> {
 public:
  // Larger variables have no home; their recordings are made again instead. A
  // home holds a reference to the memory, so a change that could have been in
  // place would need as much memory again.
  static constexpr int64_t kMostBytes = int64_t{64} << 20;
  // The variable cannot go home while another reader uses the home's memory.
  // The home is given up if kLooksAtLeast looks in a row, over at least
  // kLongestUse, have found the memory in use: one long use, or uses without a
  // gap. Two short uses far apart are only two looks, hence the least number of
  // looks.
  static constexpr absl::Duration kLongestUse = absl::Milliseconds(100);
  static constexpr int kLooksAtLeast = 8;

  // If the memory of a value of at most this size is shared, the home is new
  // memory, as a copy costs next to nothing. TensorFlow caches each scalar made
  // from a Python number forever, and a variable assigned from such a scalar
  // shares its memory.
  static constexpr int64_t kMostCopiedBytes = 4096;

  // Returns the variable's home: the existing one, or a new one. A new home is
  // the variable's current memory, or memory of the leader's `allocator` into
  // which PutBack moves the variable. nullptr if the variable has no value, or
  // too large a one, or does not own the memory. The variable must not change
  // during the call.
  static std::shared_ptr<VariableHome> Of(Var* variable, Allocator* allocator);

  // Whether `value`, the variable's, has the home's own buffer. The same
  // address is not enough: a stand-in (ChangedVariables) has the same
  // address, but owns no memory.
  bool Has(const Tensor& value) const {
    return (RootOf(value) == root_ || !IsKept(Rule::kHomeKnowsItsOwnBuffer)) &&
           value.data() == address_ && Suits(value);
  }

  // Ok if nobody refers to the memory but the variable, which is at home, and
  // the caller by `own` tensors, so that only readers of the variable see a
  // write. Else Unavailable, or Aborted if the home was given up.
  absl::Status CheckIsItsOwn(Var* variable, int own = 0);

  // The Unavailable error above; also used for variables without a home.
  static absl::Status InUse();

  // Whether `value` and `others` other tensors are all that refer to the
  // memory. The others must have the buffer of `value`. KnownVariables drop
  // their references for that.
  static bool IsAllThatRefers(const Tensor& value, int others);

  // Moves the variable home, if it is elsewhere. Unavailable if the home's
  // memory is still in use; Aborted if the home was given up, which also
  // happens once the variable has another type or shape. `state` is the
  // variable's key. Waits for threads that are launching ops that read or
  // change the variable.
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
  // Notes a look that found the memory in use. Returns whether to give up the
  // home.
  bool IsInUseForLong() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes a look that found the memory free.
  void NoteFree() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { looks_in_use_ = 0; }
  absl::Status PutBackLocked(GpuGroups* gpu, Var* variable)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Only compared, never dereferenced. Valid while place_ has a value.
  const TensorBuffer* const root_;
  const void* const address_;
  const DataType type_;
  const TensorShape shape_;

  absl::Mutex mu_;
  // If this is the sole reference to the memory, only work already enqueued
  // still reads the memory. No value if the home was given up.
  std::optional<Tensor> place_ ABSL_GUARDED_BY(mu_);
  // Looks in a row that found the memory in use, and the time of the first.
  int looks_in_use_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time in_use_since_ ABSL_GUARDED_BY(mu_);
};

// A tensor with the memory of `own` and a reference count of one, so that an op
// may write into the memory.
Tensor StandInOf(const Tensor& own);

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

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_VARIABLES_VARIABLE_HOME_H_
