// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which two uses of memory does the sanitizer report, and how does it say so?
// A Sanitizer makes reports; its owner (gpu_groups.cc) logs their text.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_

#include <cstddef>
#include <string>

namespace tensorflow::multistream {

enum class UseKind { kRead, kWrite, kFree, kAllocate, kOwn };

// One side of a report.
struct Use {
  UseKind kind;
  int group;
  // The op that uses the memory; for a free, the last op that the group had
  // launched. Empty if no op is known.
  std::string op;
  std::string tensor;
};

enum class ReportKind {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  // Freed while a group other than its owner may still use it.
  kFreedInUse,
  // Handed out again, or used after that, while a use from before may not be
  // over.
  kHandedOutInUse,
  // Handed out before it was freed.
  kHandedOutTwice,
  kUsedAfterFree,
};

struct Report {
  ReportKind kind;
  Use current;
  Use previous;
  // The memory that both sides use.
  const void* address;
  size_t bytes;
  // Made by MissingOrder.
  std::string missing;
};

// Says what would have put the two uses in order, such as a wait.
std::string MissingOrder(const Report& report);

// Several lines for people, the current use first.
std::string ReportAsText(const Report& report);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_
