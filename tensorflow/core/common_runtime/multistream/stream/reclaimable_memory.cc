// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/reclaimable_memory.h"

#include <algorithm>

namespace tensorflow {
namespace multistream {

void ReclaimableMemory::Add(Owner* owner) {
  absl::MutexLock lock(&mu_);
  owners_.push_back(owner);
}

void ReclaimableMemory::Remove(Owner* owner) {
  absl::MutexLock lock(&mu_);
  owners_.erase(std::find(owners_.begin(), owners_.end(), owner));
}

void ReclaimableMemory::Reclaim(StreamGroup* group) {
  absl::MutexLock lock(&mu_);
  for (Owner* owner : owners_) owner->GiveBack(group);
}

}  // namespace multistream
}  // namespace tensorflow
