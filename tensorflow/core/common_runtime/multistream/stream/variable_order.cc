// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"

namespace tensorflow::multistream {

static_assert(kMaxGroupCount <= 64, "a slot has a bit for each group");

VariableOrder::VariableOrder(std::vector<StreamGroup*> groups)
    : groups_(std::move(groups)),
      seen_(groups_.size()),
      slots_(groups_.size() > 1 ? new Slot[size_t{kRows} << kSlotBits]
                                : nullptr) {}

void VariableOrder::NoteLeaderWork() {
  // Always counts: if work were counted only where some group may still have to
  // wait for it, an event recorded meanwhile could miss the work.
  if (slots_ != nullptr) work_.fetch_add(1, std::memory_order_acq_rel);
}

void VariableOrder::OrderAfterLeader(StreamGroup* group) {
  OrderAfterWork(group, work_.load(std::memory_order_acquire));
}

void VariableOrder::OrderAfterWork(StreamGroup* group, int64_t number) {
  if (group->is_leader()) return;
  std::atomic<int64_t>& seen = seen_[group->index()].number;
  if (seen.load(std::memory_order_acquire) >= number) return;
  absl::MutexLock lock(&publish_mu_);
  if (seen.load(std::memory_order_acquire) >= number) return;
  if (published_ < number) {
    if (event_ == nullptr) event_ = leader()->NewEvent();
    const bool in_order = IsKept(Rule::kNumberIsReadBeforeTheEvent);
    if (in_order) published_ = work_.load(std::memory_order_acquire);
    leader()->RecordEvent(event_.get());
    if (!in_order) published_ = work_.load(std::memory_order_acquire);
  }
  // Then a thread that finds the number without the lock launches after the
  // wait.
  const bool in_order = IsKept(Rule::kSeenIsNotedAfterTheWait);
  if (!in_order) seen.store(published_, std::memory_order_release);
  group->OrderAfterEvent(leader(), event_.get());
  if (in_order) seen.store(published_, std::memory_order_release);
}

void VariableOrder::BeginRead(StreamGroup* group, Keys state) {
  state_locks_.Enter(SidedLocks::kReaders, state);
  // The leader's own reads are ordered by its stream.
  if (group->is_leader()) return;
  int64_t last_change = 0;
  for (Key key : state) last_change = std::max(last_change, LastChangeOf(key));
  OrderAfterWork(group, last_change);
  if (!IsKept(Rule::kReadIsMarkedOnceLaunched)) NoteRead(group, state);
}

int64_t VariableOrder::LastChangeOf(Key key) const {
  int64_t number = std::numeric_limits<int64_t>::max();
  for (int row = 0; row < kRows; ++row) {
    number = std::min(number,
                      SlotOf(key, row).changed.load(std::memory_order_acquire));
  }
  return number;
}

void VariableOrder::EndRead(StreamGroup* group, Keys state) {
  const bool in_order = IsKept(Rule::kReadIsMarkedBeforeLeaving);
  if (!in_order) state_locks_.Leave(SidedLocks::kReaders, state);
  if (!group->is_leader() && IsKept(Rule::kReadIsMarkedOnceLaunched)) {
    NoteRead(group, state);
  }
  if (in_order) state_locks_.Leave(SidedLocks::kReaders, state);
}

void VariableOrder::NoteRead(const StreamGroup* group, Keys state) {
  const uint64_t bit = uint64_t{1} << group->index();
  for (Key key : state) {
    for (int row = 0; row < kRows; ++row) {
      std::atomic<uint64_t>& read_by = SlotOf(key, row).read_by;
      // Usually the bit is still set, and the slot's cache line stays shared. A
      // thread that takes the bit after this look records its wait after that,
      // and so after the read.
      if ((read_by.load(std::memory_order_acquire) & bit) == 0) {
        read_by.fetch_or(bit, std::memory_order_acq_rel);
      }
    }
  }
}

void VariableOrder::Begin(SidedLocks::Side side, Keys state) {
  state_locks_.Enter(side, state);
  const bool in_order = IsKept(Rule::kWriteIsCountedBeforeItIsMade);
  for (Key key : state) {
    if (in_order) writes_[key % kWriteCounts].begun.fetch_add(1);
  }
  if (slots_ == nullptr) return;
  if (!IsKept(Rule::kChangeIsNumberedOnceLaunched)) NoteChange(state);
  OrderAfterReaders(state);
}

void VariableOrder::OrderAfterReaders(Keys state) {
  RuleLock lock(Rule::kReadersAreWaitedForInALock, &waits_mu_);
  uint64_t readers = 0;
  for (Key key : state) readers |= ReadersOf(key);
  if (readers == 0) return;
  const bool in_order = IsKept(Rule::kMarksAreTakenBeforeTheWait);
  if (in_order) TakeMarks(state, readers);
  for (StreamGroup* group : groups_) {
    if ((readers >> group->index() & 1) != 0) leader()->OrderAfter(group);
  }
  if (!in_order) TakeMarks(state, readers);
}

uint64_t VariableOrder::ReadersOf(Key key) const {
  uint64_t readers = ~uint64_t{0};
  for (int row = 0; row < kRows; ++row) {
    readers &= SlotOf(key, row).read_by.load(std::memory_order_acquire);
  }
  return readers;
}

void VariableOrder::TakeMarks(Keys state, uint64_t readers) {
  if (!IsKept(Rule::kOnlyMarksWaitedForAreTaken)) readers = ~uint64_t{0};
  for (Key key : state) {
    for (int row = 0; row < kRows; ++row) {
      SlotOf(key, row).read_by.fetch_and(~readers, std::memory_order_acq_rel);
    }
  }
}

void VariableOrder::End(SidedLocks::Side side, Keys state) {
  const bool is_numbered = !IsKept(Rule::kChangeIsNumberedOnceLaunched);
  const bool in_order = IsKept(Rule::kChangeIsNumberedBeforeLeaving);
  if (in_order && !is_numbered) NoteChange(state);
  const bool is_counted = IsKept(Rule::kWriteIsCountedBeforeItIsMade);
  for (Key key : state) {
    if (is_counted) writes_[key % kWriteCounts].ended.fetch_add(1);
  }
  state_locks_.Leave(side, state);
  if (!in_order) NoteChange(state);
}

void VariableOrder::NoteChange(Keys state) {
  if (slots_ == nullptr) return;
  // Locked, so that the number in a slot only grows.
  RuleLock lock(Rule::kChangesAreNumberedInALock, &numbers_mu_);
  const int64_t number = work_.fetch_add(1, std::memory_order_acq_rel) + 1;
  for (Key key : state) {
    for (int row = 0; row < kRows; ++row) {
      SlotOf(key, row).changed.store(number, std::memory_order_release);
    }
  }
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
