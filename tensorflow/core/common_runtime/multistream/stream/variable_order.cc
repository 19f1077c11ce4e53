// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"

#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/rules.h"

namespace tensorflow::multistream {

VariableOrder::VariableOrder(std::vector<StreamGroup*> groups)
    : groups_(std::move(groups)), readers_(groups_.size()) {}

void VariableOrder::OrderAfterLeader(StreamGroup* group) {
  if (group->is_leader()) return;
  std::atomic<int64_t>& seen = readers_[group->index()].published_seen;
  if (!leader_work_.load(std::memory_order_acquire) &&
      seen.load(std::memory_order_acquire) ==
          published_.load(std::memory_order_acquire)) {
    return;
  }
  absl::MutexLock lock(&publish_mu_);
  if (leader_work_.load(std::memory_order_acquire)) {
    // Count first: a thread that finds no work without the lock then sees a
    // count that its group has not waited for, and takes the lock.
    const bool in_order = IsKept(Rule::kPublishedIsCountedBeforeWorkIsDone);
    if (in_order) published_.fetch_add(1, std::memory_order_acq_rel);
    leader_work_.exchange(false, std::memory_order_acq_rel);
    if (!in_order) published_.fetch_add(1, std::memory_order_acq_rel);
    if (event_ == nullptr) event_ = leader()->NewEvent();
    leader()->RecordEvent(event_.get());
  }
  const int64_t made = published_.load(std::memory_order_acquire);
  if (seen.load(std::memory_order_acquire) < made) {
    const bool in_order = IsKept(Rule::kSeenIsNotedAfterTheWait);
    if (!in_order) seen.store(made, std::memory_order_release);
    group->OrderAfterEvent(leader(), event_.get());
    if (in_order) seen.store(made, std::memory_order_release);
  }
}

void VariableOrder::BeginRead(StreamGroup* group, Keys state) {
  state_locks_.Enter(SidedLocks::kReaders, state);
  OrderAfterLeader(group);
}

void VariableOrder::EndRead(StreamGroup* group, Keys state) {
  const bool in_order = IsKept(Rule::kReadIsNotedBeforeLeaving);
  if (!in_order) state_locks_.Leave(SidedLocks::kReaders, state);
  // The leader's own reads are ordered by its stream.
  if (!group->is_leader()) {
    readers_[group->index()].has_read.store(true, std::memory_order_release);
  }
  if (in_order) state_locks_.Leave(SidedLocks::kReaders, state);
}

void VariableOrder::Begin(SidedLocks::Side side, Keys state) {
  state_locks_.Enter(side, state);
  const bool in_order = IsKept(Rule::kWriteIsCountedBeforeItIsMade);
  for (Key key : state) {
    if (in_order) writes_[key % kWriteCounts].begun.fetch_add(1);
  }
  // Locked: a writer that finds `has_read` cleared launches after the waits.
  // Reads of other variables, which may be in progress, need none.
  RuleLock lock(Rule::kReadersAreWaitedForInALock, &waits_mu_);
  for (StreamGroup* group : groups_) {
    if (readers_[group->index()].has_read.exchange(false,
                                                   std::memory_order_acq_rel)) {
      leader()->OrderAfter(group);
    }
  }
}

void VariableOrder::End(SidedLocks::Side side, Keys state) {
  const bool in_order = IsKept(Rule::kWorkIsNotedBeforeLeaving);
  if (in_order) NoteLeaderWork();
  const bool is_counted = IsKept(Rule::kWriteIsCountedBeforeItIsMade);
  for (Key key : state) {
    if (is_counted) writes_[key % kWriteCounts].ended.fetch_add(1);
  }
  state_locks_.Leave(side, state);
  if (!in_order) NoteLeaderWork();
}

std::optional<int64_t> VariableOrder::Version(Keys state) const {
  int64_t version = 0;
  for (Key key : state) {
    const Writes& writes = writes_[key % kWriteCounts];
    // `ended` is read first, so that equal counts prove a moment without a
    // change.
    const int64_t ended = writes.ended.load();
    const int64_t begun = writes.begun.load();
    if (begun != ended) return std::nullopt;
    version += begun;
  }
  return version;
}

}  // namespace tensorflow::multistream
