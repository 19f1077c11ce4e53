// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does one kernel compute in place of several elementwise ops?
//
//   m - g, * 0.1, += m        slots: m (read and written), g, 0.1 (a scalar),
//                             the difference, the product
//                             steps: difference = m - g, product = ..., m = ...
//
// The steps are done for each element, one after the other, so an element's
// values need no memory between them. Each step rounds as the op's own kernel
// does. The same program serves all variables that an optimizer updates.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_PROGRAM_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"

namespace tensorflow::multistream {

struct FusedProgram {
  // A place in memory.
  struct Slot {
    bool is_scalar = false;
    bool is_read = false;  // the value from before the kernel
    bool is_written = false;
    bool is_bool = false;
    std::optional<Broadcast> broadcast = std::nullopt;
  };
  // `operands` and `result` are slots.
  struct Step {
    Arithmetic arithmetic;
    std::vector<int> operands;
    int result;
  };
  std::vector<Slot> slots;
  std::vector<Step> steps;

  // Equal for equal programs.
  std::string Key() const;
};

// The arguments of a program: the slots' addresses, and the number of elements
// of each slot that is neither a scalar nor broadcast.
struct FusedCall {
  int64_t elements = 0;
  std::vector<uint64_t> addresses;
};

// An op of a program. The ids name memory: one for each operand, then one for
// the result.
struct FusedOp {
  const ElementwiseOp* op;
  std::vector<int> ids;
  bool is_stored;  // the result is written to memory
};
// The ops must all have the same number of elements. Ops that write the same
// memory must agree on is_stored.
FusedProgram ProgramOf(absl::Span<const FusedOp> ops);

// The arguments with which the program does what `ops` do. An error if they are
// not the ops of the program.
absl::StatusOr<FusedCall> CallOf(const FusedProgram& program,
                                 absl::Span<const ElementwiseOp> ops);

// A launch's arguments: so many bytes in all, of which the first are the number
// of calls, and for each call its first block, its elements and its addresses.
inline constexpr size_t kFusedArgumentBytes = 4096;
inline constexpr size_t kFusedHeadBytes = 8;
inline size_t BytesOfCall(const FusedProgram& program) {
  return 8 + 8 * program.slots.size();
}
// The most calls of one launch.
inline int MostCallsOf(const FusedProgram& program) {
  return static_cast<int>((kFusedArgumentBytes - kFusedHeadBytes) /
                          BytesOfCall(program));
}

// Runs the program on the host.
void RunFused(const FusedProgram& program, const FusedCall& call);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_FUSE_FUSED_PROGRAM_H_
