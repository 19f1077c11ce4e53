// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// For searches: an allocator that makes every use after free visible.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tensorflow/core/framework/allocator.h"

namespace tensorflow::multistream::search {

// LIFO reuse: the block freed last is allocated first, with its old content. No
// block goes back to the system before the destructor.
class LateMemory : public Allocator {
 public:
  ~LateMemory() override {
    for (auto& [address, bytes] : bytes_of_) port::AlignedFree(address);
  }
  std::string Name() override { return "late"; }
  void* AllocateRaw(size_t alignment, size_t bytes) override {
    ++in_use_;
    std::vector<void*>& free = free_[bytes];
    if (!free.empty()) {
      void* address = free.back();
      free.pop_back();
      return address;
    }
    void* address = port::AlignedMalloc(bytes, 64);
    bytes_of_[address] = bytes;
    return address;
  }
  void DeallocateRaw(void* address) override {
    --in_use_;
    free_[bytes_of_.at(address)].push_back(address);
  }
  int64_t in_use() const { return in_use_; }

 private:
  std::map<void*, size_t> bytes_of_;
  std::map<size_t, std::vector<void*>> free_;
  int64_t in_use_ = 0;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_MEMORY_H_
