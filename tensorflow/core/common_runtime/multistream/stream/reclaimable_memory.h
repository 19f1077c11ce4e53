// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory of a stream group can be reclaimed when an allocation fails?
// That of objects that only make steps faster, such as recordings. Their owners
// are asked to drop them.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

class StreamGroup;

// The reclaimable memory of one stream group. Thread-safe.
class ReclaimableMemory {
 public:
  class Owner {
   public:
    // Drops all reclaimable objects in memory of `group`. Their memory is free
    // once the group's stream has completed the work that uses it. Called by
    // the thread that allocates, which may hold any locks.
    virtual void GiveBack(StreamGroup* group) = 0;

   protected:
    ~Owner() = default;
  };

  // Counts one object that has reclaimable memory. Make it a member of the
  // object that is destroyed after the memory is freed.
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

  void Add(Owner* owner) {
    absl::MutexLock lock(&mu_);
    owners_.push_back(owner);
  }
  void Remove(Owner* owner) {
    absl::MutexLock lock(&mu_);
    owners_.erase(std::find(owners_.begin(), owners_.end(), owner));
  }

  // Whether an object has reclaimable memory. A dropped object counts until its
  // memory is free.
  bool IsHeld() const { return holders_.load(std::memory_order_acquire) > 0; }
  // Asks all owners to give back memory. `group` is the group of this object.
  void Reclaim(StreamGroup* group) {
    absl::MutexLock lock(&mu_);
    for (Owner* owner : owners_) owner->GiveBack(group);
  }

 private:
  absl::Mutex mu_;
  std::vector<Owner*> owners_ ABSL_GUARDED_BY(mu_);
  std::atomic<int> holders_{0};
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STREAM_RECLAIMABLE_MEMORY_H_
