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
// A group's allocator reports each region that it takes from the GPU. An op
// asks for every input, so asking takes no lock: the table of regions is
// immutable, and a report publishes a new one.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow {
namespace multistream {

class StreamGroup;

class MemoryOwner {
 public:
  MemoryOwner();
  ~MemoryOwner();

  // The table of this process. Never deleted.
  static MemoryOwner* Get();

  // From now on [address, address + bytes) is `group`'s. A part of it that was
  // another group's has been given back by that group's allocator, and moves.
  void Add(const void* address, size_t bytes, StreamGroup* group);

  // nullptr if no group owns the address, as with host memory.
  StreamGroup* Find(const void* address) const {
    const uintptr_t a = reinterpret_cast<uintptr_t>(address);
    const std::vector<Region>& regions =
        *table_.load(std::memory_order_acquire);
    size_t low = 0, high = regions.size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (regions[middle].end <= a) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low < regions.size() && regions[low].begin <= a ? regions[low].group
                                                           : nullptr;
  }

 private:
  struct Region {
    uintptr_t begin;
    uintptr_t end;
    StreamGroup* group;
  };
  using Table = std::vector<Region>;  // sorted, disjoint

  std::atomic<const Table*> table_;
  absl::Mutex mu_;
  // Every table ever published: a reader may still hold an old one. Regions
  // are few (one a group, or a handful each where memory grows).
  std::vector<std::unique_ptr<const Table>> tables_ ABSL_GUARDED_BY(mu_);
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_OWNER_H_
