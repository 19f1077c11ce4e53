// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensorflow::multistream {
namespace {

// The history is swept when it has doubled, and not while it is small.
constexpr size_t kSmallHistory = 1024;

// FirstPart, Cut and MergeNeighbours work on maps of parts of memory by first
// address. Each part stores where it ends.

// The first part that ends after `begin`.
template <typename Part>
typename std::map<uintptr_t, Part>::iterator FirstPart(
    std::map<uintptr_t, Part>* parts, uintptr_t begin) {
  auto next = parts->upper_bound(begin);
  if (next == parts->begin()) return next;
  auto previous = std::prev(next);
  return previous->second.end > begin ? previous : next;
}

// Splits the part that has `at` inside, if there is one.
template <typename Part>
void Cut(std::map<uintptr_t, Part>* parts, uintptr_t at) {
  auto found = FirstPart(parts, at);
  if (found == parts->end() || found->first >= at) return;
  Part right = found->second;
  found->second.end = at;
  parts->emplace_hint(std::next(found), at, std::move(right));
}

// Merges adjacent parts that are `alike`.
template <typename Part, typename Alike>
void MergeNeighbours(std::map<uintptr_t, Part>* parts, Alike alike) {
  if (parts->empty()) return;
  for (auto left = parts->begin(), right = std::next(left);
       right != parts->end();) {
    if (left->second.end == right->first &&
        alike(left->second, right->second)) {
      left->second.end = right->second.end;
      right = parts->erase(right);
    } else {
      left = right++;
    }
  }
}

// Keeps only the last use by each group: a stream runs its ops in order.
template <typename TouchPtr>
void KeepLast(const TouchPtr& touch, std::vector<TouchPtr>* touches) {
  for (TouchPtr& other : *touches) {
    if (other->use.group != touch->use.group) continue;
    if (other->position <= touch->position) other = touch;
    return;
  }
  touches->push_back(touch);
}

// Half of a report's key: the op or, for uses that no op makes, the group.
std::string Side(const Use& use) {
  return use.kind == UseKind::kRead || use.kind == UseKind::kWrite
             ? use.op
             : absl::StrCat("group ", use.group);
}

}  // namespace

Sanitizer::Sanitizer(int group_count, OnReport on_report)
    : on_report_(std::move(on_report)),
      known_(group_count),
      last_op_(group_count),
      sweep_at_(kSmallHistory) {}

void Sanitizer::Launch(int group, const std::string& op,
                       const std::vector<Access>& accesses) {
  std::vector<Report> found;
  {
    absl::MutexLock lock(&mu_);
    const int64_t position = known_[group][group] + 1;
    known_[group].Raise(group, position);
    last_op_[group] = op;
    Touches reads, writes;
    for (const Access& access : accesses) {
      if (access.bytes == 0) continue;
      const auto begin = reinterpret_cast<uintptr_t>(access.address);
      auto touch = std::make_shared<const Touch>(
          Touch{{access.is_write ? UseKind::kWrite : UseKind::kRead, group, op,
                 access.tensor},
                position,
                begin,
                begin + access.bytes});
      CheckLifetime(*touch, &found);
      CheckOrder(*touch, &found);
      (access.is_write ? writes : reads).push_back(std::move(touch));
    }
    for (const TouchPtr& touch : reads) Remember(touch);
    for (const TouchPtr& touch : writes) Remember(touch);
    Sweep();
  }
  for (const Report& report : found) on_report_(report);
}

void Sanitizer::Record(EventId event, int group) {
  absl::MutexLock lock(&mu_);
  events_[event] = known_[group];
}

void Sanitizer::Wait(int group, EventId event) {
  absl::MutexLock lock(&mu_);
  auto found = events_.find(event);
  if (found != events_.end()) known_[group].Join(found->second);
}

void Sanitizer::WaitForTail(int group, int other) {
  absl::MutexLock lock(&mu_);
  known_[group].Join(known_[other]);
}

Position Sanitizer::Tail(int group) {
  absl::MutexLock lock(&mu_);
  return known_[group];
}

void Sanitizer::Completed(const Position& position) {
  absl::MutexLock lock(&mu_);
  completed_.Join(position);
}

void Sanitizer::HostSynchronized(const Position& position) {
  absl::MutexLock lock(&mu_);
  for (VectorClock& known : known_) known.Join(position);
}

void Sanitizer::Allocate(int owner, const void* address, size_t bytes,
                         bool for_copy) {
  std::vector<Report> found;
  {
    absl::MutexLock lock(&mu_);
    AllocateLocked(owner, address, bytes, for_copy, &found);
  }
  for (const Report& report : found) on_report_(report);
}

void Sanitizer::AllocateLocked(int owner, const void* address, size_t bytes,
                               bool for_copy, std::vector<Report>* found) {
  if (bytes == 0) return;
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const Touch now = {{UseKind::kAllocate, owner, "", ""},
                     known_[owner][owner],
                     begin,
                     begin + bytes};
  Touches before = TakeBlocks(now, found);
  SettleLifetimes(now, ReportKind::kHandedOutInUse, &before, found);
  if (for_copy) before.clear();
  blocks_[begin] = Block{now.end, owner, /*live=*/true, std::move(before)};
  Sweep();
}

void Sanitizer::Forget(const void* address, size_t bytes) {
  absl::MutexLock lock(&mu_);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (auto it = FirstPart(&blocks_, begin);
       it != blocks_.end() && it->first < begin + bytes; ++it) {
    if (!it->second.live) it->second.before.clear();
  }
}

void Sanitizer::Free(const void* address) {
  std::vector<Report> found;
  {
    absl::MutexLock lock(&mu_);
    FreeLocked(address, &found);
  }
  for (const Report& report : found) on_report_(report);
}

void Sanitizer::FreeLocked(const void* address, std::vector<Report>* found) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  auto at = blocks_.find(begin);
  if (at == blocks_.end() || !at->second.live) return;
  Block& block = at->second;
  const int64_t tail = known_[block.owner][block.owner];
  const Touch now = {
      {UseKind::kFree, block.owner, "", ""}, tail, begin, block.end};
  for (const TouchPtr& touch : TakeTouches(begin, block.end)) {
    KeepLast(touch, &block.before);
  }
  SettleLifetimes(now, ReportKind::kFreedInUse, &block.before, found);
  // Any op of the owner so far may have used the block, also as scratch memory.
  block.live = false;
  block.freed = std::make_shared<const Touch>(
      Touch{{UseKind::kFree, block.owner, last_op_[block.owner], ""},
            tail,
            begin,
            block.end});
  KeepLast(block.freed, &block.before);
}

void Sanitizer::Renew(int owner, const void* address, size_t bytes) {
  std::vector<Report> found;
  {
    absl::MutexLock lock(&mu_);
    const auto begin = reinterpret_cast<uintptr_t>(address);
    const auto block = FirstPart(&blocks_, begin);
    const bool is_part = block != blocks_.end() && block->second.live &&
                         block->first <= begin &&
                         block->second.end >= begin + bytes &&
                         block->second.end - block->first > bytes;
    if (is_part) return;
    FreeLocked(address, &found);
    AllocateLocked(owner, address, bytes, /*for_copy=*/false, &found);
  }
  for (const Report& report : found) on_report_(report);
}

int64_t Sanitizer::report_count() {
  absl::MutexLock lock(&mu_);
  return reported_.size();
}

size_t Sanitizer::history_size() {
  absl::MutexLock lock(&mu_);
  return ranges_.size() + blocks_.size();
}

void Sanitizer::CheckLifetime(const Touch& touch, std::vector<Report>* found) {
  for (auto it = FirstPart(&blocks_, touch.begin);
       it != blocks_.end() && it->first < touch.end; ++it) {
    Block& block = it->second;
    if (block.live) {
      SettleLifetimes(touch, ReportKind::kHandedOutInUse, &block.before, found);
    } else {
      Find(ReportKind::kUsedAfterFree, touch, *block.freed, found);
    }
  }
}

void Sanitizer::CheckOrder(const Touch& touch, std::vector<Report>* found) {
  const bool is_write = touch.use.kind == UseKind::kWrite;
  for (auto it = FirstPart(&ranges_, touch.begin);
       it != ranges_.end() && it->first < touch.end; ++it) {
    const Range& range = it->second;
    if (range.write != nullptr && !Ordered(touch.use.group, *range.write)) {
      Find(
          is_write ? ReportKind::kWriteAfterWrite : ReportKind::kReadAfterWrite,
          touch, *range.write, found);
    }
    if (!is_write) continue;
    for (const TouchPtr& read : range.reads) {
      if (!Ordered(touch.use.group, *read)) {
        Find(ReportKind::kWriteAfterRead, touch, *read, found);
      }
    }
  }
}

void Sanitizer::Remember(const TouchPtr& touch) {
  Cut(&ranges_, touch->begin);
  Cut(&ranges_, touch->end);
  auto it = FirstPart(&ranges_, touch->begin);
  for (uintptr_t at = touch->begin; at < touch->end; ++it) {
    if (it == ranges_.end() || it->first > at) {
      const uintptr_t end =
          it == ranges_.end() ? touch->end : std::min(it->first, touch->end);
      it = ranges_.emplace_hint(it, at, Range{end});
    }
    if (touch->use.kind == UseKind::kWrite) {
      // A use ordered after this write is ordered after the reads before it.
      it->second.write = touch;
      it->second.reads.clear();
    } else {
      KeepLast(touch, &it->second.reads);
    }
    at = it->second.end;
  }
}

Sanitizer::Touches Sanitizer::TakeTouches(uintptr_t begin, uintptr_t end) {
  Cut(&ranges_, begin);
  Cut(&ranges_, end);
  Touches touches;
  auto it = ranges_.lower_bound(begin);
  while (it != ranges_.end() && it->first < end) {
    if (it->second.write != nullptr) KeepLast(it->second.write, &touches);
    for (const TouchPtr& read : it->second.reads) KeepLast(read, &touches);
    it = ranges_.erase(it);
  }
  return touches;
}

Sanitizer::Touches Sanitizer::TakeBlocks(const Touch& now,
                                         std::vector<Report>* found) {
  auto it = FirstPart(&blocks_, now.begin);
  while (it != blocks_.end() && it->first < now.end) {
    if (!it->second.live) {
      ++it;
      continue;
    }
    const int owner = it->second.owner;
    Touch previous = {
        {UseKind::kOwn, owner, "", ""}, 0, it->first, it->second.end};
    // The old block's uses belong to this report and make no further ones.
    for (const TouchPtr& touch : TakeTouches(previous.begin, previous.end)) {
      if (touch->use.group != owner) continue;
      previous.use.op = touch->use.op;
      previous.use.tensor = touch->use.tensor;
    }
    Find(ReportKind::kHandedOutTwice, now, previous, found);
    it = blocks_.erase(it);
  }
  Cut(&blocks_, now.begin);
  Cut(&blocks_, now.end);
  Touches before = TakeTouches(now.begin, now.end);
  it = blocks_.lower_bound(now.begin);
  while (it != blocks_.end() && it->first < now.end) {
    for (const TouchPtr& touch : it->second.before) KeepLast(touch, &before);
    it = blocks_.erase(it);
  }
  return before;
}

void Sanitizer::SettleLifetimes(const Touch& now, ReportKind kind,
                                Touches* touches, std::vector<Report>* found) {
  Touches open;
  for (TouchPtr& touch : *touches) {
    if (HasPassed(*touch)) continue;
    if (Ordered(now.use.group, *touch)) {
      open.push_back(std::move(touch));
    } else {
      Find(kind, now, *touch, found);
    }
  }
  *touches = std::move(open);
}

void Sanitizer::Find(ReportKind kind, const Touch& current,
                     const Touch& previous, std::vector<Report>* found) {
  if (reported_.size() >= kMostReports) return;
  const std::string pair =
      absl::StrCat(static_cast<int>(kind), "\n", Side(current.use), "\n",
                   Side(previous.use));
  if (!reported_.insert(pair).second) return;
  uintptr_t begin = std::max(current.begin, previous.begin);
  uintptr_t end = std::min(current.end, previous.end);
  if (begin >= end) {  // two parts of one block
    begin = current.begin;
    end = current.end;
  }
  Report report = {kind,         current.use,
                   previous.use, reinterpret_cast<const void*>(begin),
                   end - begin,  ""};
  report.missing = MissingOrder(report);
  found->push_back(std::move(report));
}

void Sanitizer::Sweep() {
  if (ranges_.size() + blocks_.size() < sweep_at_) return;
  const VectorClock& completed = completed_;
  VectorClock all = known_[0];
  for (const VectorClock& known : known_) all.Meet(known);
  auto settled = [&all](const TouchPtr& touch) {
    return all.Covers(touch->use.group, touch->position);
  };
  auto drop = [](auto done, Touches* touches) {
    touches->erase(std::remove_if(touches->begin(), touches->end(), done),
                   touches->end());
  };
  for (auto it = ranges_.begin(); it != ranges_.end();) {
    Range& range = it->second;
    if (range.write != nullptr && settled(range.write)) range.write = nullptr;
    drop(settled, &range.reads);
    it = range.write == nullptr && range.reads.empty() ? ranges_.erase(it)
                                                       : std::next(it);
  }
  for (auto& [begin, block] : blocks_) {
    drop(
        [&](const TouchPtr& touch) {
          mu_.AssertHeld();
          return settled(touch) ||
                 completed.Covers(touch->use.group, touch->position);
        },
        &block.before);
  }
  MergeNeighbours(&ranges_, [](const Range& a, const Range& b) {
    return a.write == b.write && a.reads == b.reads;
  });
  MergeNeighbours(&blocks_, [](const Block& a, const Block& b) {
    return !a.live && !b.live && a.owner == b.owner && a.before == b.before;
  });
  sweep_at_ = std::max(kSmallHistory, 2 * (ranges_.size() + blocks_.size()));
}

}  // namespace tensorflow::multistream
