// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/checked_uses.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

constexpr char kRubbish = static_cast<char>(0xB7);
// Limit of memory bytes times ops; larger checks would take too long.
constexpr int64_t kMostBytes = int64_t{1} << 29;

}  // namespace

std::vector<RecordedOp> CheckedUses::Ops(std::vector<int>* op_of_call) const {
  std::vector<RecordedOp> ops;
  std::vector<Allocation> made;
  std::vector<size_t> freed;
  for (const LaunchedOp& op : ops_) {
    made.insert(made.end(), op.made.begin(), op.made.end());
    freed.insert(freed.end(), op.freed.begin(), op.freed.end());
    const bool writes = op.alone || std::any_of(op.uses.begin(), op.uses.end(),
                                                [](const MemoryUse& use) {
                                                  return use.writes;
                                                });
    if (op_of_call != nullptr) {
      op_of_call->push_back(writes ? static_cast<int>(ops.size()) : -1);
    }
    if (!writes) continue;
    RecordedOp& recorded = ops.emplace_back();
    recorded.uses = op.uses;
    recorded.launches = 1;
    recorded.alone = op.alone;
    recorded.elementwise = op.elementwise;
    recorded.made = std::exchange(made, {});
    recorded.freed = std::exchange(freed, {});
  }
  return ops;
}

void CheckedUses::Again() {
  const int64_t ops = static_cast<int64_t>(ops_.size());
  again_ = true;
  if (ops > 0 && memory_->bytes() > kMostBytes / ops) ops_.clear();
}

void CheckedUses::Begins(const LaunchedOp& op) {
  // If the ops differ in the repeat, the step is not recorded anyway.
  if (!again_ || next_ >= ops_.size() || ops_[next_].name != op.name) return;
  const std::vector<MemoryUse>& uses = ops_[next_].uses;
  for (const auto& [address, bytes] : memory_->All()) {
    const uint64_t begin = reinterpret_cast<uint64_t>(address);
    const uint64_t end = begin + bytes;
    bool is_used = false, is_written = false;
    for (const MemoryUse& use : uses) {
      if (use.begin >= end || use.end <= begin) continue;
      is_used = true;
      is_written = is_written || use.writes;
    }
    if (!is_written) Keep(begin, end, is_used);
  }
}

void CheckedUses::Keep(uint64_t begin, uint64_t end, bool is_used) {
  auto* at = reinterpret_cast<char*>(begin);
  kept_.push_back({at, std::string(at, end - begin), !is_used});
  if (!is_used) std::memset(at, kRubbish, end - begin);
}

void CheckedUses::Launched(LaunchedOp op) {
  if (!again_) {
    if (op.elementwise) op.uses = UsesOf(*op.elementwise);
    ops_.push_back(std::move(op));
    return;
  }
  ++next_;
  for (const auto& [at, had, is_rubbish] : kept_) {
    const bool is_as_it_was =
        is_rubbish ? std::all_of(at, at + had.size(),
                                 [](char c) { return c == kRubbish; })
                   : std::memcmp(at, had.data(), had.size()) == 0;
    CHECK(is_as_it_was) << "'" << op.name << "' changed memory that it is said "
                        << (is_rubbish ? "not to use" : "to read only");
    std::memcpy(at, had.data(), had.size());
  }
  kept_.clear();
}

}  // namespace tensorflow::multistream
