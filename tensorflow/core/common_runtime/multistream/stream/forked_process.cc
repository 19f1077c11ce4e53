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

#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"

#include <pthread.h>

#include <atomic>

#include "absl/status/status.h"

namespace tensorflow {
namespace multistream {
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

}  // namespace multistream
}  // namespace tensorflow
