// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"

#include <algorithm>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

MemoryOwner::MemoryOwner()
    : parts_(new std::atomic<Parts*>[kEnd >> kPartsBits]()) {}

MemoryOwner::~MemoryOwner() = default;

MemoryOwner* MemoryOwner::Get() {
  static MemoryOwner* owner = new MemoryOwner;
  return owner;
}

uint16_t MemoryOwner::PlaceOf(StreamGroup* group) {
  if (group == nullptr) return 0;
  auto [place, added] = places_.try_emplace(group, places_.size() + 1);
  if (added) {
    CHECK_LT(place->second, kMostGroups);
    groups_[place->second].store(group, std::memory_order_relaxed);
  }
  return place->second;
}

uintptr_t MemoryOwner::NewPart(uint16_t place) {
  if (spare_granules_.empty()) {
    all_granules_.push_back(std::make_unique<Granules>());
    spare_granules_.push_back(all_granules_.back().get());
  }
  Granules* granules = spare_granules_.back();
  spare_granules_.pop_back();
  // A reader that still holds this recycled table notices: the root entry
  // changed.
  for (auto& granule : *granules) {
    granule.store(place, std::memory_order_release);
  }
  return reinterpret_cast<uintptr_t>(granules) | kIsTable |
         uintptr_t{++turn_} << kTurnBits;
}

void MemoryOwner::MakeWhole(std::atomic<uintptr_t>* entry, StreamGroup* group) {
  const uintptr_t before = entry->load(std::memory_order_relaxed);
  entry->store(reinterpret_cast<uintptr_t>(group), std::memory_order_release);
  if ((before & kIsTable) != 0) spare_granules_.push_back(GranulesOf(before));
}

void MemoryOwner::Add(const void* address, size_t bytes, StreamGroup* group) {
  if (bytes == 0) return;
  uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~(kGranule - 1);
  const uintptr_t end =
      (reinterpret_cast<uintptr_t>(address) + bytes + kGranule - 1) &
      ~(kGranule - 1);
  absl::MutexLock lock(&mu_);
  for (uintptr_t next; begin < end; begin = next) {
    next = std::min(end, (begin | (kPartBytes - 1)) + 1);
    std::atomic<Parts*>& table = parts_[begin >> kPartsBits];
    if (table.load(std::memory_order_relaxed) == nullptr) {
      all_parts_.push_back(std::make_unique<Parts>());
      table.store(all_parts_.back().get(), std::memory_order_release);
    }
    std::atomic<uintptr_t>& entry = (*table.load(
        std::memory_order_relaxed))[begin >> kPartBits & (kPartsInTable - 1)];
    uintptr_t part = entry.load(std::memory_order_relaxed);
    if (part == reinterpret_cast<uintptr_t>(group)) continue;
    if (next - begin == kPartBytes) {
      MakeWhole(&entry, group);
      continue;
    }
    if ((part & kIsTable) == 0) {
      part = NewPart(PlaceOf(reinterpret_cast<StreamGroup*>(part)));
      entry.store(part, std::memory_order_release);
    }
    Granules& granules = *GranulesOf(part);
    const uint16_t place = PlaceOf(group);
    for (uintptr_t a = begin; a < next; a += kGranule) {
      granules[PlaceInPart(a)].store(place, std::memory_order_release);
    }
    // Only when memory is returned, check whether the whole part is ownerless
    // now: returns are rare, and the rest of a part that is in use may be
    // returned next.
    if (group == nullptr &&
        std::all_of(granules.begin(), granules.end(), [](const auto& granule) {
          return granule.load(std::memory_order_relaxed) == 0;
        })) {
      MakeWhole(&entry, nullptr);
    }
  }
}

bool MemoryOwner::Owns(const void* address, size_t bytes,
                       StreamGroup* group) const {
  auto at = reinterpret_cast<uintptr_t>(address);
  const uintptr_t end = at + bytes;
  if (end > kEnd) return false;
  while (at < end) {
    const Parts* parts =
        parts_[at >> kPartsBits].load(std::memory_order_acquire);
    if (parts == nullptr) return false;
    const uintptr_t part = (*parts)[at >> kPartBits & (kPartsInTable - 1)].load(
        std::memory_order_acquire);
    if ((part & kIsTable) == 0) {
      if (part != reinterpret_cast<uintptr_t>(group)) return false;
      at = (at | (kPartBytes - 1)) + 1;
      continue;
    }
    if (Find(reinterpret_cast<const void*>(at)) != group) return false;
    at = (at | (kGranule - 1)) + 1;
  }
  return true;
}

}  // namespace tensorflow::multistream
