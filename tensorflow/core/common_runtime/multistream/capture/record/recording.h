// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a step recorded, to be launched again as a whole? If capture is on,
// each device of a stream group comes with a Recorder, with which the executor
// records. On a CUDA device a recording is a CUDA graph; on an emulated GPU a
// recording runs the ops again.
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

namespace tensorflow::multistream {

// A recorded step of one group. Delete a recording only after the group's
// stream has completed the last launch.
class Recording {
 public:
  virtual ~Recording() = default;

  // The recording's memory, and whether an address range is part of that
  // memory.
  virtual Allocator* memory() = 0;
  virtual bool Has(const void* address, size_t bytes) const = 0;

  // The caller must have held the group's record_mu since the first use of
  // memory().
  //
  // Calls `enqueue` at least twice; an emulated GPU's recording keeps `enqueue`
  // and calls it for each launch. The ops must run on one thread, always in the
  // same order. Blocks until the work of the first call is complete. Only what
  // was allocated from memory() before Record keeps its contents.
  //
  // After an error the recording is unusable. Errors are those of `enqueue`;
  // Aborted or FailedPrecondition say why the step cannot be recorded.
  virtual absl::Status Record(std::function<absl::Status()> enqueue) = 0;

  // Whether ops can run side by side, and gain by it.
  virtual bool has_branches() const = 0;

  // Enqueues the step on the group's stream. `with_branches`, which needs
  // has_branches(), runs ops side by side. The caller must hold the group's
  // launch_mu, as only one launch at a time may use the step's memory.
  virtual absl::Status Launch(bool with_branches) = 0;

  // Memory on the device and the host, plus what the driver may need for the
  // recording.
  virtual int64_t bytes() const = 0;

  // Number of kernels in the last launch; 0 if not counted.
  virtual int64_t kernels() const { return 0; }

  // The most memory that a launch takes from a pool, besides bytes().
  virtual int64_t workspace_bytes() const { return 0; }
};

// The device on which a group's steps are recorded. The device is like the
// group's own, but its streams run only the ops being recorded.
class Recorder {
 public:
  virtual ~Recorder() = default;

  virtual Device* device() = 0;
  virtual std::unique_ptr<Recording> NewRecording() = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_RECORD_RECORDING_H_
