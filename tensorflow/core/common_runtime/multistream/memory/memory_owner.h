// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which stream group owns the memory at an address? Allocators enter owners,
// and OpScopes look up every input of each op, so a lookup takes no lock. It
// reads a table of the address space with two levels and an optional third:
//
//   1 GiB of addresses -> its 512 parts of 2 MiB -> a group, for all of a part,
//                                                   or one for each 256 bytes
//
// The table's size is bounded: 4 KiB for each GiB of addresses that GPU memory
// has ever had, and 16 KiB for each part that now has several groups, or a
// group and unowned memory. Before memory is returned to the system, Add it
// with nullptr, because the address may be reused for any other memory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_MEMORY_OWNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_MEMORY_OWNER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

class StreamGroup;

class MemoryOwner {
 public:
  // Allocators round sizes up to this, so two groups never share a granule.
  static constexpr size_t kGranule = 256;

  MemoryOwner();
  ~MemoryOwner();

  // The table of this process. Never deleted.
  static MemoryOwner* Get();

  // Makes `group` the owner of [address, address + bytes), both ends rounded
  // outwards to kGranule; nullptr: no owner. Memory in the range that belongs
  // to another group moves; that group must have freed it.
  void Add(const void* address, size_t bytes, StreamGroup* group);

  // Whether `group` owns the whole range.
  bool Owns(const void* address, size_t bytes, StreamGroup* group) const;

  // nullptr if no group owns the address, as with host memory.
  StreamGroup* Find(const void* address) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    if (a >= kEnd) return nullptr;
    const Parts* parts =
        parts_[a >> kPartsBits].load(std::memory_order_acquire);
    if (parts == nullptr) return nullptr;
    const std::atomic<uintptr_t>& entry =
        (*parts)[a >> kPartBits & (kPartsInTable - 1)];
    uintptr_t part = entry.load(std::memory_order_acquire);
    while ((part & kIsTable) != 0) {
      const uint16_t place =
          (*GranulesOf(part))[PlaceInPart(a)].load(std::memory_order_acquire);
      // The table may have been recycled for another part meanwhile.
      const uintptr_t now = entry.load(std::memory_order_acquire);
      if (now == part) return groups_[place].load(std::memory_order_relaxed);
      part = now;
    }
    return reinterpret_cast<StreamGroup*>(part);
  }

  // The number of tables of granules, in use or spare.
  size_t tables_for_tests() {
    absl::MutexLock lock(&mu_);
    return all_granules_.size();
  }

 private:
  static constexpr int kPartsBits = 30;
  static constexpr int kPartBits = 21;
  static constexpr uintptr_t kEnd = uintptr_t{1} << 47;  // of user addresses
  static constexpr size_t kPartsInTable = size_t{1} << (kPartsBits - kPartBits);
  static constexpr size_t kPartBytes = size_t{1} << kPartBits;
  static constexpr size_t kGranulesInPart = kPartBytes / kGranule;
  // An entry with kIsTable points to a table of Granules instead of a group.
  // The bits above the address count how often tables were given out. So a
  // reader notices, by a changed entry, that its table was recycled (ABA).
  static constexpr uintptr_t kIsTable = 1;
  static constexpr int kTurnBits = 48;

  // Above the number of groups that a process can have.
  static constexpr size_t kMostGroups = 1 << 11;

  // Indices into groups_; 0: no owner.
  using Granules = std::array<std::atomic<uint16_t>, kGranulesInPart>;
  using Parts = std::array<std::atomic<uintptr_t>, kPartsInTable>;

  static Granules* GranulesOf(uintptr_t part) {
    return reinterpret_cast<Granules*>(
        part & ((uintptr_t{1} << kTurnBits) - 1) & ~kIsTable);
  }
  static size_t PlaceInPart(uintptr_t address) {
    return address / kGranule & (kGranulesInPart - 1);
  }

  uint16_t PlaceOf(StreamGroup* group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns a new entry with a table of granules that all have owner `place`.
  uintptr_t NewPart(uint16_t place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Makes `group` the owner of the whole part, and recycles its table, if any.
  void MakeWhole(std::atomic<uintptr_t>* entry, StreamGroup* group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<std::atomic<Parts*>[]> parts_;
  std::array<std::atomic<StreamGroup*>, kMostGroups> groups_ = {};
  absl::Mutex mu_;
  absl::flat_hash_map<StreamGroup*, uint16_t> places_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Parts>> all_parts_ ABSL_GUARDED_BY(mu_);
  // Kept as long as this object, because readers take no lock.
  std::vector<std::unique_ptr<Granules>> all_granules_ ABSL_GUARDED_BY(mu_);
  std::vector<Granules*> spare_granules_ ABSL_GUARDED_BY(mu_);
  uint16_t turn_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_MEMORY_OWNER_H_
