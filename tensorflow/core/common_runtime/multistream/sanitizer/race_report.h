/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Which two uses of memory does the sanitizer report, and how does it say so?
// A Sanitizer makes reports; whoever owns it (gpu_groups.cc) logs their text.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_

#include <cstddef>
#include <string>

namespace tensorflow {
namespace multistream {

enum class UseKind { kRead, kWrite, kFree, kAllocate, kOwn };

// One side of a report.
struct Use {
  UseKind kind;
  int group;
  // Of a free, the last op that its group had launched; else empty where no op
  // is known.
  std::string op;
  std::string tensor;
};

enum class ReportKind {
  kReadAfterWrite,
  kWriteAfterRead,
  kWriteAfterWrite,
  // Freed while a group other than its owner may still use it.
  kFreedInUse,
  // Handed out, or used by its next user, while an earlier one may still use
  // it.
  kHandedOutInUse,
  // Handed out before it was freed.
  kHandedOutTwice,
  kUsedAfterFree,
};

struct Report {
  ReportKind kind;
  Use current;
  Use previous;
  // What both use.
  const void* address;
  size_t bytes;
  // What would have put the two in order.
  std::string missing;
};

// What would have put the two uses in order: Report::missing.
std::string MissingOrder(const Report& report);

// Several lines for people, the current use first.
std::string ReportAsText(const Report& report);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SANITIZER_RACE_REPORT_H_
