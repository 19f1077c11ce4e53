// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Fixture for tests of StreamAwarePool: a pool of four groups, with a sanitizer
// that checks every use.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/memory/stream_aware_pool.h"
#include "tensorflow/core/common_runtime/multistream/sanitizer/sanitizer.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/framework/allocator.h"

namespace tensorflow {
namespace multistream {

inline constexpr int64_t kMegabyte = 1 << 20;

// Gives at most `most` bytes. Addresses have the same order in each run,
// because the pool prefers the lower one of two equal chunks.
class AddressSpace : public SubAllocator {
 public:
  AddressSpace(int64_t most, std::vector<int64_t>* extensions)
      : SubAllocator({}, {}), most_(most), extensions_(extensions) {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    begin_ = static_cast<char*>(memory);
  }
  ~AddressSpace() override {
    EXPECT_EQ(taken_, 0);
    munmap(begin_, kBytes);
  }

  void* Alloc(size_t alignment, size_t num_bytes,
              size_t* bytes_received) override {
    *bytes_received = 0;
    if (taken_ + static_cast<int64_t>(num_bytes) > most_) return nullptr;
    size_t at = 0;  // the first gap
    for (const auto& [begin, size] : in_use_) {
      if (begin - at >= num_bytes) break;
      at = begin + size;
    }
    if (kBytes - at < num_bytes) return nullptr;
    in_use_[at] = num_bytes;
    taken_ += num_bytes;
    extensions_->push_back(num_bytes);
    *bytes_received = num_bytes;
    return begin_ + at;
  }
  void Free(void* memory, size_t num_bytes) override {
    taken_ -= num_bytes;
    EXPECT_EQ(in_use_.erase(static_cast<char*>(memory) - begin_), 1);
    madvise(memory, num_bytes, MADV_DONTNEED);
  }
  bool SupportsCoalescing() const override { return false; }

 private:
  static constexpr size_t kBytes = size_t{1} << 30;

  const int64_t most_;
  std::vector<int64_t>* const extensions_;
  char* begin_ = nullptr;
  std::map<size_t, size_t> in_use_;  // bytes from begin_, and how many
  int64_t taken_ = 0;
};

// A group that reports its waits to a sanitizer.
class WatchedGroup : public FakeStreamGroup {
 public:
  WatchedGroup(int index, StreamRecord* record, Sanitizer* sanitizer)
      : FakeStreamGroup(0, index, record), sanitizer_(sanitizer) {}

  void WaitFor(StreamGroup* other) override {
    FakeStreamGroup::WaitFor(other);
    sanitizer_->WaitForTail(index(), other->index());
    if (once_it_waits) std::exchange(once_it_waits, nullptr)();
  }
  absl::Status Synchronize() override {
    sanitizer_->HostSynchronized(index());
    return absl::OkStatus();
  }

  std::function<void()> once_it_waits;

 private:
  Sanitizer* const sanitizer_;
};

class StreamAwarePoolTest : public ::testing::Test {
 protected:
  static constexpr int kGroups = 4;

  StreamAwarePoolTest()
      : sanitizer_(kGroups, [](const Report& report) {
          ADD_FAILURE() << ReportAsText(report);
        }) {
    for (int i = 0; i < kGroups; ++i) {
      groups_.push_back(
          std::make_unique<WatchedGroup>(i, &record_, &sanitizer_));
    }
  }

  // The pool takes all of `limit` at once, unless `options` say otherwise.
  void MakePool(int64_t limit, StreamAwarePool::Options options = {},
                int64_t on_gpu = int64_t{1} << 40) {
    options.limit = limit;
    std::vector<StreamGroup*> groups;
    for (const auto& group : groups_) groups.push_back(group.get());
    pool_ = std::make_unique<StreamAwarePool>(
        std::make_unique<AddressSpace>(on_gpu, &extensions_), groups, options);
  }

  // Synchronizes first, because the next pool may get the same addresses.
  void DropPool() {
    for (int i = 0; i < kGroups; ++i) sanitizer_.HostSynchronized(i);
    pool_.reset();
  }

  char* Get(int group, int64_t bytes) {
    void* memory = pool_->Allocate(group, bytes, /*retry=*/false);
    if (memory == nullptr) return nullptr;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 256, 0);
    EXPECT_TRUE(MemoryOwner::Get()->Owns(memory, pool_->AllocatedSize(memory),
                                         groups_[group].get()));
    sanitizer_.Allocate(group, memory, bytes);
    sanitizer_.Launch(group, "op",
                      {{memory, static_cast<size_t>(bytes), true, "t"}});
    return static_cast<char*>(memory);
  }
  void Free(void* memory) {
    sanitizer_.Free(memory);
    pool_->Free(memory);
  }
  // Leaves no fresh memory: `group` uses all memory once and frees it.
  void UseAll(int group, int64_t bytes) {
    char* all = Get(group, bytes);
    ASSERT_NE(all, nullptr);
    Free(all);
  }
  using Calls = std::vector<std::string>;
  // The number of waits since the last call.
  int64_t Waits() { return record_.Take().size(); }

  StreamRecord record_;
  Sanitizer sanitizer_;
  std::vector<std::unique_ptr<WatchedGroup>> groups_;
  std::vector<int64_t> extensions_;
  std::unique_ptr<StreamAwarePool> pool_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_STREAM_AWARE_POOL_FIXTURE_H_
