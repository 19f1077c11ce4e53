// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do the ops of a recorded step use what they are said to use, and nothing
// else? The order in which a CUDA graph runs them depends on it. An emulated
// GPU's memory can be looked at, so each of its recordings is checked once.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/capture/record/op_uses.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"

namespace tensorflow {
namespace multistream {

// Watches a step's first run and, after Again, a repeat. Meanwhile each op
// finds rubbish where it is said to use nothing. Ends the process if an op
// changes what it should not; if it reads that, the step gives rubbish.
class CheckedUses : public OpWatcher {
 public:
  explicit CheckedUses(const RecordingMemory* memory) : memory_(memory) {}

  // Before Again: the ops, each as one launch if it changes anything.
  std::vector<RecordedOp> Ops() const;
  void Again();

  void Begins(const std::string& op) override;
  void Launched(const std::string& op, std::vector<MemoryUse> uses) override;

 private:
  // Some of the recording's memory, and what it had before the op.
  struct Kept {
    char* at;
    std::string had;
    bool is_rubbish;  // now
  };
  void Keep(uint64_t begin, uint64_t end, bool is_used);

  const RecordingMemory* const memory_;
  bool again_ = false;
  struct Op {
    std::string name;
    std::vector<MemoryUse> uses;
  };
  std::vector<Op> ops_;  // of the first run
  size_t next_ = 0;      // of the repeat
  std::vector<Kept> kept_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_CHECKED_USES_H_
