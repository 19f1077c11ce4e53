// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does the memory of a recorded step come from, and why does it stay
// where it is? A recording (capture/record/recording.h) launches the same
// kernels on the same addresses each time. So the recording owns all memory
// allocated while it was made, for as long as it lives.
//
//   first run     allocates   A      B  free B   C in B's place
//   every repeat  gets        A      B           C              again
//
// A repeat with a different allocation gets no memory, and Check reports the
// difference: the step is not the same work each time, and must not be
// recorded.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream {

// Thread-safe.
class RecordingMemory {
 public:
  // Ops that use the same memory cannot run side by side. This much extra
  // memory keeps the ops apart in most steps of small ops.
  static constexpr size_t kApartBytes = size_t{4} << 20;

  // Takes memory from `device` and `pinned` (host), which must both outlive
  // this object. Freed memory is reused only after `apart_bytes` have been
  // taken from `device`.
  RecordingMemory(Allocator* device, Allocator* pinned, size_t apart_bytes = 0);
  // Frees the memory. No tensor may refer to it, and no stream may use it.
  ~RecordingMemory();

  // Freed device memory is reused later in the same run: the stream runs the
  // ops in the same order.
  Allocator* device();
  // Freed pinned memory is never reused: the host writes it at once, but a copy
  // reads it when the stream gets there.
  Allocator* pinned();

  // Ends the allocations that repeats do not make: the step's inputs.
  void Start();
  // Begins a repeat: it must make the same allocations as the run since Start.
  void Repeat();
  // Notes that an op reads a variable's memory, which the recording does not
  // own.
  void NoteRead(const void* address);
  // Whether the current repeat has read the same memory as the first run.
  bool SameReads() const;
  // Checks the current run, which has ended with `status`. Aborted, with the
  // reason, if its allocations or reads differ from the first run's; else
  // `status`. A failed run may have made only the first of the allocations.
  absl::Status Check(absl::Status status = absl::OkStatus()) const;

  // Whether `bytes` bytes at `address` are in the device part, or in the pinned
  // part.
  bool IsDevice(const void* address, size_t bytes) const;
  bool IsPinned(const void* address, size_t bytes) const;

  // All device memory, as pairs of address and bytes.
  using Spans = std::vector<std::pair<const void*, size_t>>;
  Spans All() const;
  // The device memory given out in the current run since the last TakeGiven.
  std::vector<Allocation> TakeGiven();
  // Numbers of the allocations of the current run that have surely been freed
  // since the last TakeFreed.
  std::vector<size_t> TakeFreed();

  // From the next repeat on, each of these allocations gets memory of its own,
  // which it had shared with later ones. False: there is too little memory, and
  // nothing has changed.
  bool KeepApart(const std::vector<size_t>& allocations);

  // Bytes on the device and the host together.
  int64_t bytes() const;

 private:
  class Part;

  // `all`: compares complete runs, not only the reads up to now.
  bool AreReadsSame(bool all) const;

  const std::shared_ptr<Part> device_;
  const std::shared_ptr<Part> pinned_;
  mutable absl::Mutex mu_;
  bool repeats_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<const void*> read_ ABSL_GUARDED_BY(mu_);   // by the first run
  std::vector<const void*> again_ ABSL_GUARDED_BY(mu_);  // by this repeat
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_MEMORY_H_
