/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Which stream group owns the memory at an address?
//
// An op asks for every input, so asking takes no lock: the answer is in a table
// of the address space with two levels and an optional third.
//
//   1 GiB of addresses -> its 512 parts of 2 MiB -> a group, for all of a part,
//                                                   or one for each 256 bytes

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow {
namespace multistream {

class StreamGroup;

class MemoryOwner {
 public:
  // What allocators round sizes to: no two groups share one.
  static constexpr size_t kGranule = 256;

  MemoryOwner();
  ~MemoryOwner();

  // The table of this process. Never deleted.
  static MemoryOwner* Get();

  // From now on [address, address + bytes), both rounded outwards to kGranule,
  // is `group`'s. A part of it that was another group's has been given back by
  // that group, and moves.
  void Add(const void* address, size_t bytes, StreamGroup* group);

  // Whether all of it is `group`'s.
  bool Owns(const void* address, size_t bytes, StreamGroup* group) const;

  // nullptr if no group owns the address, as with host memory.
  StreamGroup* Find(const void* address) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    if (a >= kEnd) return nullptr;
    const Parts* parts =
        parts_[a >> kPartsBits].load(std::memory_order_acquire);
    if (parts == nullptr) return nullptr;
    const uintptr_t part = (*parts)[a >> kPartBits & (kPartsInTable - 1)].load(
        std::memory_order_acquire);
    if ((part & kIsTable) == 0) return reinterpret_cast<StreamGroup*>(part);
    const Granules& granules = *reinterpret_cast<Granules*>(part & ~kIsTable);
    return groups_[granules[a / kGranule & (kGranulesInPart - 1)].load(
                       std::memory_order_relaxed)]
        .load(std::memory_order_relaxed);
  }

 private:
  static constexpr int kPartsBits = 30;
  static constexpr int kPartBits = 21;
  static constexpr uintptr_t kEnd = uintptr_t{1} << 47;  // of user addresses
  static constexpr size_t kPartsInTable = size_t{1} << (kPartsBits - kPartBits);
  static constexpr size_t kPartBytes = size_t{1} << kPartBits;
  static constexpr size_t kGranulesInPart = kPartBytes / kGranule;
  // In the entry of a part: not a group, but its Granules.
  static constexpr uintptr_t kIsTable = 1;

  // More groups than a process can have.
  static constexpr size_t kMostGroups = 1 << 11;

  // Places in groups_, of which 0 is nobody's. Who may ask has the memory from
  // its owner, so no order is needed here.
  using Granules = std::array<std::atomic<uint16_t>, kGranulesInPart>;
  using Parts = std::array<std::atomic<uintptr_t>, kPartsInTable>;

  uint16_t PlaceOf(StreamGroup* group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::unique_ptr<std::atomic<Parts*>[]> parts_;
  std::array<std::atomic<StreamGroup*>, kMostGroups> groups_ = {};
  absl::Mutex mu_;
  absl::flat_hash_map<StreamGroup*, uint16_t> places_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Parts>> all_parts_ ABSL_GUARDED_BY(mu_);
  std::vector<std::unique_ptr<Granules>> all_granules_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_
