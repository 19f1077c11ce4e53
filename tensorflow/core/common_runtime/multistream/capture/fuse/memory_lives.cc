// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/fuse/memory_lives.h"

#include <algorithm>

namespace tensorflow::multistream {
namespace {

std::vector<MemoryUse> AllMemory(const std::vector<RecordedOp>& ops) {
  std::vector<MemoryUse> all;
  for (const RecordedOp& op : ops) {
    all.insert(all.end(), op.uses.begin(), op.uses.end());
    for (const Allocation& made : op.made) {
      all.push_back({made.begin, made.end, true});
    }
  }
  return all;
}

}  // namespace

MemoryLives::MemoryLives(const std::vector<RecordedOp>& ops)
    : places_(AllMemory(ops)),
      lives_of_(places_.size()),
      is_shared_(places_.size()),
      used_by_(ops.size()) {
  FindShared(ops);
  for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
    for (const Allocation& made : ops[i].made) Begin(made, i);
    for (const MemoryUse& use : ops[i].uses) {
      if (use.begin < use.end) Use(i, use);
    }
    for (const size_t number : ops[i].freed) End(number, i);
  }
}

int MemoryLives::Find(int op, uint64_t address) const {
  const int place = places_.Find(address);
  for (const Used& used : used_by_[op]) {
    if (lives_[used.life].place == place) return used.life;
  }
  return -1;
}

// A use that reaches beyond a block makes one place of the block and other
// memory: such a place has one life.
void MemoryLives::FindShared(const std::vector<RecordedOp>& ops) {
  for (const RecordedOp& op : ops) {
    for (const Allocation& made : op.made) {
      const int place = places_.Find(made.begin);
      if (place < 0) continue;
      const MemoryUse& all = places_[place];
      if (all.begin != made.begin || all.end != made.end) {
        is_shared_[place] = true;
      }
    }
  }
}

void MemoryLives::Begin(const Allocation& made, int op) {
  const int place = places_.Find(made.begin);
  if (place < 0 || is_shared_[place]) return;
  if (!lives_of_[place].empty()) {
    Life& before = lives_[lives_of_[place].back()];
    before.end = std::min(before.end, op);
  }
  lives_of_[place].push_back(size());
  by_number_[made.number] = size();
  lives_.push_back(
      {place, static_cast<int64_t>(made.number), made.end - made.begin});
}

void MemoryLives::End(size_t number, int op) {
  const auto life = by_number_.find(number);
  if (life == by_number_.end()) return;
  lives_[life->second].end = std::min(lives_[life->second].end, op);
}

void MemoryLives::Use(int op, const MemoryUse& use) {
  const int place = places_.Find(use.begin);
  if (lives_of_[place].empty()) {
    lives_of_[place].push_back(size());
    lives_.push_back({place});
  }
  const int life = lives_of_[place].back();
  lives_[life].is_written = lives_[life].is_written || use.writes;
  for (Used& used : used_by_[op]) {
    if (used.life != life) continue;
    used.writes = used.writes || use.writes;
    lives_[life].users.back().writes = used.writes;
    return;
  }
  used_by_[op].push_back({life, use.writes});
  lives_[life].users.push_back({op, use.writes});
}

}  // namespace tensorflow::multistream
