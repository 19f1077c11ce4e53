// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/sided_locks.h"

#include <algorithm>
#include <vector>

namespace tensorflow::multistream {

bool SidedLocks::MayEnter(Side side, absl::Span<const Key> keys,
                          const Request* request) {
  for (Key key : keys) {
    auto found = locks_.find(key);
    if (found == locks_.end()) continue;
    const Lock& lock = found->second;
    if (lock.HasOneThatExcludes(side)) return false;
    for (const Request* other : lock.waiting) {
      if (other == request) break;
      if (Exclude(side, other->side) && IsKept(Rule::kWhoWaitsIsNotOvertaken)) {
        return false;
      }
    }
  }
  return true;
}

void SidedLocks::Enter(Side side, absl::Span<const Key> keys) {
  absl::MutexLock lock(&mu_);
  if (MayEnter(side, keys, nullptr)) {
    for (Key key : keys) ++locks_[key].inside[side];
    return;
  }
  Request request = {side, keys};
  for (Key key : keys) locks_[key].waiting.push_back(&request);
  ++waiting_;
  while (!request.admitted) request.changed.Wait(&mu_);
  --waiting_;
}

void SidedLocks::Leave(Side side, absl::Span<const Key> keys) {
  absl::MutexLock lock(&mu_);
  for (Key key : keys) --locks_[key].inside[side];
  for (Key key : keys) {
    Admit(key);
    if (!IsKept(Rule::kWhoLeavesWakesTheWaitersOfAllKeys)) break;
  }
}

// Call when a thread has left the lock of `key`. Admitting one waiter never
// unblocks another: inside the lock, a thread excludes at least the threads
// that it excluded while it waited.
void SidedLocks::Admit(Key key) {
  auto found = locks_.find(key);
  if (found == locks_.end()) return;  // a duplicate in `keys`
  if (found->second.waiting.empty()) {
    if (found->second.IsEmpty()) locks_.erase(found);
    return;
  }
  for (Request* request : std::vector<Request*>(found->second.waiting)) {
    if (request->admitted || !MayEnter(request->side, request->keys, request)) {
      continue;
    }
    for (Key k : request->keys) {
      Lock& lock = locks_[k];
      ++lock.inside[request->side];
      lock.waiting.erase(
          std::remove(lock.waiting.begin(), lock.waiting.end(), request),
          lock.waiting.end());
    }
    request->admitted = true;
    request->changed.Signal();
  }
}

int64_t SidedLocks::size() {
  absl::MutexLock lock(&mu_);
  return locks_.size();
}

int64_t SidedLocks::waiting() {
  absl::MutexLock lock(&mu_);
  return waiting_;
}

}  // namespace tensorflow::multistream
