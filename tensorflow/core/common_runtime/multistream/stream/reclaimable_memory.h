// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory of a stream group can be reclaimed when an allocation fails?
// Memory of things that only make steps faster, such as recordings: their
// owners are asked to drop them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_

#include <atomic>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow {
namespace multistream {

class StreamGroup;

// Of one stream group. Thread-safe.
class ReclaimableMemory {
 public:
  class Owner {
   public:
    // Drops what has memory of `group`. The memory comes back once the group's
    // stream has completed what uses it. Called by who allocates, with any
    // locks.
    virtual void GiveBack(StreamGroup* group) = 0;

   protected:
    ~Owner() = default;
  };

  // A member of whatever has such memory: it ends after that memory.
  class Holder {
   public:
    explicit Holder(ReclaimableMemory* of) : of_(of) {
      of_->holders_.fetch_add(1, std::memory_order_acq_rel);
    }
    ~Holder() { of_->holders_.fetch_sub(1, std::memory_order_acq_rel); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    ReclaimableMemory* const of_;
  };

  void Add(Owner* owner);
  void Remove(Owner* owner);

  // Whether anything has such memory: also what has been dropped, until its
  // memory is back.
  bool IsHeld() const { return holders_.load(std::memory_order_acquire) > 0; }
  // Asks all owners to give back the memory of `group`, whose memory this is.
  void Reclaim(StreamGroup* group);

 private:
  absl::Mutex mu_;
  std::vector<Owner*> owners_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> holders_{0};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_
