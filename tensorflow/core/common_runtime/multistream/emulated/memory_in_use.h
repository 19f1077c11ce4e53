// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On an emulated GPU: is memory freed while an op of another group, enqueued
// and not completed, may still use it? Emulated streams say what they use, what
// they have completed and what they wait for, and the emulated GPU what it
// frees. A CPU would hide such a mistake: its ops run when they are launched.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/vector_clock.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow {
namespace multistream {

// Uses of memory by groups that do not own it and whose streams have yet to
// complete them, and which of them the streams wait for. Thread-safe.
class MemoryInUse {
 public:
  static MemoryInUse* Get();

  // `group` has enqueued an op that uses `address`. Returns the use's number.
  int64_t Add(const StreamGroup* group, const void* address);
  // The op is completed.
  void Remove(const void* address, int64_t number);
  // To be called before `owner` frees its memory, which it may hand out at
  // once, to ops on its own stream. A violation, if another group may still use
  // it.
  void CheckFree(const StreamGroup* owner, const void* begin, size_t bytes);

  // What an event has that is recorded now on `group`'s stream.
  VectorClock Tail(const StreamGroup* group);
  // `group`'s stream waits for an event that has `other`.
  void Wait(const StreamGroup* group, const VectorClock& other);

  // How often memory was freed while an emulated stream of another group had
  // yet to complete an op that uses it. Anything but 0 is a bug in the runtime.
  int64_t violations();

 private:
  MemoryInUse() = default;

  absl::Mutex mu_;
  int64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  // By address and number: the group.
  std::map<const void*, std::map<int64_t, int>> pending_ ABSL_GUARDED_BY(mu_);
  // Numbers of uses of foreign memory that are enqueued on a group's stream, by
  // itself or through waits.
  std::map<const StreamGroup*, VectorClock> known_ ABSL_GUARDED_BY(mu_);
  int64_t violations_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_MEMORY_IN_USE_H_
