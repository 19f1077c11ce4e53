// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests: a stream that completes its work when the test calls Complete, and
// then checks that memory used by the work has not been freed.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_MANUAL_STREAM_GROUP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_MANUAL_STREAM_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// Tracks which addresses are in use. Reuses no address before Recycle, so that
// freed memory cannot be mistaken for a new allocation. Thread-safe.
class WatchedMemory : public AllocatorWrapper {
 public:
  WatchedMemory() : AllocatorWrapper(cpu_allocator()) {}
  ~WatchedMemory() override { Recycle(); }
  // Freed addresses may be reused from now on.
  void Recycle() {
    absl::MutexLock lock(&mu_);
    for (void* address : free_) AllocatorWrapper::DeallocateRaw(address);
    free_.clear();
  }
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    void* address = AllocatorWrapper::AllocateRaw(alignment, bytes);
    absl::MutexLock lock(&mu_);
    in_use_.insert(address);
    return address;
  }
  void* AllocateRaw(size_t alignment, size_t bytes,
                    const AllocationAttributes&) override {
    return AllocateRaw(alignment, bytes);
  }
  void DeallocateRaw(void* address) override {
    absl::MutexLock lock(&mu_);
    in_use_.erase(address);
    free_.push_back(address);
  }

  bool IsInUse(const void* address) {
    absl::MutexLock lock(&mu_);
    return in_use_.contains(address);
  }
  int64_t in_use() {
    absl::MutexLock lock(&mu_);
    return in_use_.size();
  }

 private:
  absl::Mutex mu_;
  absl::flat_hash_set<const void*> in_use_ ABSL_GUARDED_BY(mu_);
  std::vector<void*> free_ ABSL_GUARDED_BY(mu_);
};

// Thread-safe, except for `before_waiting`.
class ManualStreamGroup : public FakeStreamGroup {
 public:
  using FakeStreamGroup::FakeStreamGroup;

  // Enqueues work that uses `data`, memory of `memory`.
  void Use(WatchedMemory* memory, const void* data) {
    Enqueue([this, memory, data] {
      if (memory->IsInUse(data)) return;
      absl::MutexLock lock(&mu_);
      ++used_too_late_;
    });
  }
  void ThenExecute(std::function<void()> f) override {
    Enqueue(std::move(f));
    absl::MutexLock lock(&mu_);
    ++callbacks_;
  }
  void WaitForEvent(StreamGroup* other, StreamEvent* event) override {
    if (before_waiting) before_waiting();
    FakeStreamGroup::WaitForEvent(other, event);
  }

  // Completes all work enqueued so far.
  void Complete() {
    std::deque<std::function<void()>> completed;
    {
      absl::MutexLock lock(&mu_);
      completed.swap(enqueued_);
    }
    for (; !completed.empty(); completed.pop_front()) completed.front()();
  }

  // Callbacks enqueued so far.
  int callbacks() {
    absl::MutexLock lock(&mu_);
    return callbacks_;
  }
  // How much work the stream reached after its memory was freed.
  int used_too_late() {
    absl::MutexLock lock(&mu_);
    return used_too_late_;
  }

  std::function<void()> before_waiting;

 private:
  void Enqueue(std::function<void()> work) {
    absl::MutexLock lock(&mu_);
    enqueued_.push_back(std::move(work));
  }

  absl::Mutex mu_;
  std::deque<std::function<void()>> enqueued_ ABSL_GUARDED_BY(mu_);
  int callbacks_ ABSL_GUARDED_BY(mu_) = 0;
  int used_too_late_ ABSL_GUARDED_BY(mu_) = 0;
};

// The groups of GPU 0; they are also appended to `slow`.
inline std::unique_ptr<GpuGroups> NewManualGroups(
    int count, StreamRecord* record, std::vector<ManualStreamGroup*>* slow) {
  std::vector<std::unique_ptr<StreamGroup>> groups;
  for (int i = 0; i < count; ++i) {
    auto group = std::make_unique<ManualStreamGroup>(0, i, record);
    slow->push_back(group.get());
    groups.push_back(std::move(group));
  }
  return std::make_unique<GpuGroups>(std::move(groups));
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_MANUAL_STREAM_GROUP_H_
