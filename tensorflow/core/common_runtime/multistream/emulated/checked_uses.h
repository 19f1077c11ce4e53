// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do the ops of a recorded step use exactly the memory that they are said to
// use? A CUDA graph with branches is ordered by these declared uses. An
// emulated GPU's memory can be inspected, so each of its recordings is checked
// once.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"

namespace tensorflow::multistream {

// Watches a step's first run and, after Again, a repeat. In the repeat, memory
// that an op is not said to use is filled with garbage while the op runs. Ends
// the process if an op writes memory that it is not said to write; an op that
// reads undeclared memory gets garbage, which shows in the step's results.
class CheckedUses : public OpWatcher {
 public:
  explicit CheckedUses(const RecordingMemory* memory) : memory_(memory) {}

  // Call before Again. The ops that write, each of which counts as one launch.
  // `op_of_call`, if not null: for each op that was run, its index among them,
  // or -1.
  std::vector<RecordedOp> Ops(std::vector<int>* op_of_call = nullptr) const;
  void Again();

  void Begins(const LaunchedOp& op) override;
  void Launched(LaunchedOp op) override;

 private:
  // A piece of the recording's memory, and its content before the op.
  struct Kept {
    char* at;
    std::string had;
    bool is_rubbish;  // while the op runs
  };
  void Keep(uint64_t begin, uint64_t end, bool is_used);

  const RecordingMemory* const memory_;
  bool again_ = false;
  std::vector<LaunchedOp> ops_;  // of the first run
  size_t next_ = 0;              // of the repeat
  std::vector<Kept> kept_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_
