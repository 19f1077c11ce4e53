// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On an emulated GPU: is memory freed while another group's op that uses it is
// enqueued and not completed? Emulated streams report their uses, completions
// and waits, and the emulated GPU reports what it frees. Without this check the
// CPU would hide the fault, because its ops run when they are launched.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

// Pending uses of memory by groups that do not own the memory, and which of
// these uses other streams wait for. Thread-safe.
class MemoryInUse {
 public:
  static MemoryInUse* Get() {
    static MemoryInUse* in_use = new MemoryInUse;
    return in_use;
  }

  // `group` has enqueued an op that uses `address`. Returns the use's number.
  int64_t Add(const StreamGroup* group, const void* address) {
    absl::MutexLock lock(&mu_);
    const int64_t number = ++last_;
    pending_[address][number] = group->index();
    known_[group].Raise(group->index(), number);
    return number;
  }
  // The op is completed.
  void Remove(const void* address, int64_t number) {
    absl::MutexLock lock(&mu_);
    auto found = pending_.find(address);
    found->second.erase(number);
    if (found->second.empty()) pending_.erase(found);
  }
  // Call before `owner` frees its memory, which may be reused at once by ops on
  // its own stream. Counts a violation if another group may still use it.
  void CheckFree(const StreamGroup* owner, const void* begin, size_t bytes) {
    absl::MutexLock lock(&mu_);
    const VectorClock& known = known_[owner];
    for (auto it = pending_.lower_bound(begin);
         it != pending_.end() &&
         it->first < static_cast<const char*>(begin) + bytes;
         ++it) {
      for (const auto& [number, group] : it->second) {
        if (known.Covers(group, number)) continue;
        ++violations_;
        LOG(ERROR) << "Memory at " << begin << " (" << bytes
                   << " bytes) was freed while another stream group may still "
                      "use it.";
        return;
      }
    }
  }

  // The vector clock of an event recorded now on `group`'s stream.
  VectorClock Tail(const StreamGroup* group) {
    absl::MutexLock lock(&mu_);
    return known_[group];
  }
  // `group`'s stream waits for an event with the vector clock `other`.
  void Wait(const StreamGroup* group, const VectorClock& other) {
    absl::MutexLock lock(&mu_);
    known_[group].Join(other);
  }

  // How often memory was freed while an emulated stream of another group had
  // yet to complete an op that uses it. Anything but 0 is a bug in the runtime.
  int64_t violations() {
    absl::MutexLock lock(&mu_);
    return violations_;
  }

 private:
  MemoryInUse() = default;

  absl::Mutex mu_;
  int64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  // The using group's index, by address and use number.
  std::map<const void*, std::map<int64_t, int>> pending_ ABSL_GUARDED_BY(mu_);
  // For each group, the use numbers that are before the end of its stream: its
  // own, and others' through waits.
  std::map<const StreamGroup*, VectorClock> known_ ABSL_GUARDED_BY(mu_);
  int64_t violations_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_
