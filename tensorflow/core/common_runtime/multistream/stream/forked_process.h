// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Do the stream groups in this process's memory belong to this process, or to
// the parent that fork()ed it?
//
// Only the thread that calls fork() exists in the child. The child has no
// thread to run host callbacks of streams or closures of steps, CUDA refuses
// the child's calls, and a lock that another thread held stays locked. So code
// that uses groups calls GroupsAreOfParent() first. A child does not touch the
// groups: it waits for no stream, takes none of their locks and frees none of
// their memory. It exits or execs soon after.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_

#include <atomic>

#include "absl/status/status.h"

namespace tensorflow::multistream {

inline std::atomic<bool> groups_are_of_parent{false};

// Whether this process is the fork()ed child of a process that had stream
// groups, or was making some. The child of a process that forked before it had
// groups may make its own.
inline bool GroupsAreOfParent() {
  return groups_are_of_parent.load(std::memory_order_relaxed);
}

// FailedPrecondition: the error for a child's attempt to use the groups.
absl::Status GroupsAreOfParentError();

// Call when this process has made groups.
void NoteGroupsMade();

// Alive while a thread may be making groups, and holds locks for that: a child
// forked meanwhile must not use groups either.
class MakingGroups {
 public:
  MakingGroups();
  ~MakingGroups();
  MakingGroups(const MakingGroups&) = delete;
  MakingGroups& operator=(const MakingGroups&) = delete;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_FORKED_PROCESS_H_
