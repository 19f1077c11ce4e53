// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Are the stream groups in this process's memory its own, or those of the
// process that fork()ed it?
//
// Of all threads only the one that calls fork() goes on in the child. Nobody is
// there who runs host callbacks of streams or closures of steps, CUDA refuses
// the child's calls, and a lock that another thread held stays locked. So
// whatever uses groups asks here first, and a child leaves them alone: it waits
// for no stream, takes no lock of theirs, and frees no memory. It ends, or
// execs, soon after.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_

#include <atomic>

#include "absl/status/status.h"

namespace tensorflow {
namespace multistream {

inline std::atomic<bool> groups_are_of_parent{false};

// Whether this is a fork()ed child of a process that had stream groups, or was
// making some. A process that forks before it has any is no such parent: its
// children may have groups of their own.
inline bool GroupsAreOfParent() {
  return groups_are_of_parent.load(std::memory_order_relaxed);
}

// FailedPrecondition, for who wants to use the groups all the same.
absl::Status GroupsAreOfParentError();

// This process has groups from now on.
void NoteGroupsMade();

// While it lives, a thread may make groups, under locks.
class MakingGroups {
 public:
  MakingGroups();
  ~MakingGroups();
  MakingGroups(const MakingGroups&) = delete;
  MakingGroups& operator=(const MakingGroups&) = delete;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_
