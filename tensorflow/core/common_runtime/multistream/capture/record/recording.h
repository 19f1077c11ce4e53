// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a step recorded, to be launched again as a whole? The devices of a
// stream group come with a Recorder each, if steps are to be captured; the
// executor records with it. CUDA's is a CUDA graph; an emulated GPU's runs the
// ops again.
//
//   NewRecording()       memory that stays where it is, for the inputs first
//   Record(enqueue)      `enqueue` launches the step's ops on device()
//   Launch, Launch       the same work on the same memory, on the group's
//                        stream

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

// A step of one group. To be deleted when the group's stream has completed its
// last launch.
class Recording {
 public:
  virtual ~Recording() = default;

  // Memory of the recording, and whether it has what is at an address.
  virtual Allocator* memory() = 0;
  virtual bool Has(const void* address, size_t bytes) const = 0;

  // Who calls it has had the group's record_mu since memory() was first used.
  //
  // Calls `enqueue`, twice at least; an emulated GPU's recording keeps it and
  // calls it for each launch. Its ops must run on one thread, in one order.
  // Blocks until what it enqueued first is complete. Only what memory() had
  // before is as it was.
  //
  // Errors, after which the recording is of no use: that of `enqueue`; Aborted
  // or FailedPrecondition say why the step is nothing to record.
  virtual absl::Status Record(std::function<absl::Status()> enqueue) = 0;

  // Whether its ops can run side by side, and gain by it.
  virtual bool has_branches() const = 0;

  // Enqueues the step on the group's stream; `with_branches`: with ops side by
  // side, which it has. Who calls it has the group's launch_mu, as a step's
  // memory is one launch's at a time.
  virtual absl::Status Launch(bool with_branches) = 0;

  // Of memory on the device and the host, and what the driver may have for it.
  virtual int64_t bytes() const = 0;

  // How many kernels the last launch had; 0 if nobody counted.
  virtual int64_t kernels() const { return 0; }

  // The most that a launch takes beside, from a pool.
  virtual int64_t workspace_bytes() const { return 0; }
};

// The device on which a group's steps are recorded: like the group's own, with
// streams on which nothing runs but what is being recorded.
class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual Device* device() = 0;
  virtual std::unique_ptr<Recording> NewRecording() = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_H_
