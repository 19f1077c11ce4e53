// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"

#include <pthread.h>

#include <atomic>

#include "absl/status/status.h"

namespace tensorflow::multistream {
namespace {

std::atomic<bool> made{false};
std::atomic<int> making{0};  // threads

void InChild() {
  if (made.load() || making.load() > 0) groups_are_of_parent.store(true);
}

const bool told_of_forks =
    pthread_atfork(/*prepare=*/nullptr, /*parent=*/nullptr, &InChild) == 0;

}  // namespace

absl::Status GroupsAreOfParentError() {
  return absl::FailedPreconditionError(
      "This process is a fork()ed child of one that uses stream groups of a "
      "GPU, and cannot use them: only the thread that forks goes on in a "
      "child, and CUDA refuses it. Start children with multiprocessing's "
      "'spawn' method, or before the first op and session; or give the child's "
      "session no GPU: device_count={'GPU': 0}.");
}

void NoteGroupsMade() { made.store(true); }

MakingGroups::MakingGroups() { making.fetch_add(1); }
MakingGroups::~MakingGroups() { making.fetch_sub(1); }

}  // namespace tensorflow::multistream
