// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does the memory of a recorded step come from, and why does it stay
// where it is? A recording (capture/record/recording.h) launches the same
// kernels on the same addresses each time, so all that was allocated while it
// was made is its own for as long as it lives.
//
//   first run     allocates   A      B  free B   C in B's place
//   every repeat  gets        A      B           C              again
//
// A repeat that asks for anything else gets nothing, and Check says so: the
// step is not the same work each time, and must not be recorded.

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
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

// Thread-safe.
class RecordingMemory {
 public:
  // Ops that are given the same memory cannot run side by side. So much more of
  // it keeps those of most steps of small ops apart.
  static constexpr size_t kApartBytes = size_t{4} << 20;

  // Memory of `device`, and `pinned` memory of the host; both outlive it. It
  // takes up to `apart_bytes` from `device` before it gives what has been freed
  // again, and calls `taken` when it has taken more.
  RecordingMemory(
      Allocator* device, Allocator* pinned, size_t apart_bytes = 0,
      std::function<void()> taken = [] {});
  // Gives the memory back. No tensor may be in it, and no stream may use it.
  ~RecordingMemory();

  // What frees memory of the device makes it free for what is allocated later
  // in the same run, as the stream does it in that order, too.
  Allocator* device();
  // What a copy reads when it runs must still be there: never used again.
  Allocator* pinned();

  // What is allocated until here, the step's inputs, is not repeated.
  void Start();
  // From now on, what was allocated since Start is allocated again.
  void Repeat();
  // An op reads memory that is not of the recording: a variable's.
  void NoteRead(const void* address);
  // Whether the current repeat has read what the first run did.
  bool SameReads() const;
  // Of a current run that has ended with `status`: Aborted if it asked for
  // anything else than the first one, or read other memory, which says why it
  // failed; or else `status`. A run that failed need not have asked for all.
  absl::Status Check(absl::Status status = absl::OkStatus()) const;

  // Whether `bytes` bytes at `address` are of the device's part, or of the
  // pinned one.
  bool IsDevice(const void* address, size_t bytes) const;
  bool IsPinned(const void* address, size_t bytes) const;

  // Memory of the device, by address and bytes: all of it, and what the current
  // run was given since this was last called.
  using Spans = std::vector<std::pair<const void*, size_t>>;
  Spans All() const;
  Spans TakeGiven();

  // Of the device and the host together.
  int64_t bytes() const;

 private:
  class Part;

  // `all`: not only as far as the current repeat has come.
  bool AreReadsSame(bool all) const;

  const std::shared_ptr<Part> device_;
  const std::shared_ptr<Part> pinned_;
  mutable absl::Mutex mu_;
  bool repeats_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<const void*> read_ ABSL_GUARDED_BY(mu_);   // by the first run
  std::vector<const void*> again_ ABSL_GUARDED_BY(mu_);  // by this repeat
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_MEMORY_H_
