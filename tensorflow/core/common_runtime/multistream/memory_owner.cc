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

#include "tensorflow/core/common_runtime/multistream/memory_owner.h"

#include <algorithm>
#include <utility>

namespace tensorflow {
namespace multistream {

MemoryOwner::MemoryOwner() {
  tables_.push_back(std::make_unique<const Table>());
  table_ = tables_.back().get();
}

MemoryOwner::~MemoryOwner() = default;

MemoryOwner* MemoryOwner::Get() {
  static MemoryOwner* owner = new MemoryOwner;
  return owner;
}

void MemoryOwner::Add(const void* address, size_t bytes, StreamGroup* group) {
  Region added{reinterpret_cast<uintptr_t>(address),
               reinterpret_cast<uintptr_t>(address) + bytes, group};
  if (bytes == 0) return;
  absl::MutexLock lock(&mu_);
  auto next = std::make_unique<Table>();
  auto append = [&next](const Region& r) {
    if (r.begin >= r.end) return;
    if (!next->empty() && next->back().end == r.begin &&
        next->back().group == r.group) {
      next->back().end = r.end;
    } else {
      next->push_back(r);
    }
  };
  bool placed = false;
  for (const Region& r : *table_.load(std::memory_order_relaxed)) {
    if (r.end <= added.begin) {
      append(r);
      continue;
    }
    append({r.begin, std::min(r.end, added.begin), r.group});
    if (!placed) {
      append(added);
      placed = true;
    }
    append({std::max(r.begin, added.end), r.end, r.group});
  }
  if (!placed) append(added);
  tables_.push_back(std::move(next));
  table_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace multistream
}  // namespace tensorflow
