// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/memory_in_use.h"

#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

MemoryInUse* MemoryInUse::Get() {
  static MemoryInUse* in_use = new MemoryInUse;
  return in_use;
}

int64_t MemoryInUse::Add(const StreamGroup* group, const void* address) {
  absl::MutexLock lock(&mu_);
  const int64_t number = ++last_;
  pending_[address][number] = group->index();
  known_[group].Raise(group->index(), number);
  return number;
}

void MemoryInUse::Remove(const void* address, int64_t number) {
  absl::MutexLock lock(&mu_);
  auto found = pending_.find(address);
  found->second.erase(number);
  if (found->second.empty()) pending_.erase(found);
}

void MemoryInUse::CheckFree(const StreamGroup* owner, const void* begin,
                            size_t bytes) {
  absl::MutexLock lock(&mu_);
  const VectorClock& known = known_[owner];
  for (auto it = pending_.lower_bound(begin);
       it != pending_.end() &&
       it->first < static_cast<const char*>(begin) + bytes;
       ++it) {
    for (const auto& [number, group] : it->second) {
      if (known.Covers(group, number)) continue;
      ++violations_;
      LOG(ERROR) << "Memory at " << begin << " (" << bytes
                 << " bytes) was freed while another stream group may still "
                    "use it.";
      return;
    }
  }
}

VectorClock MemoryInUse::Tail(const StreamGroup* group) {
  absl::MutexLock lock(&mu_);
  return known_[group];
}

void MemoryInUse::Wait(const StreamGroup* group, const VectorClock& other) {
  absl::MutexLock lock(&mu_);
  known_[group].Join(other);
}

int64_t MemoryInUse::violations() {
  absl::MutexLock lock(&mu_);
  return violations_;
}

}  // namespace tensorflow::multistream
