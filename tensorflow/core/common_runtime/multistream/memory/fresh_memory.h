// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory has been allocated on this thread since an op began? Group
// allocators add to it and OpAccesses reads it, for the sanitizer: an output in
// such memory is one that the op writes.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_FRESH_MEMORY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_FRESH_MEMORY_H_

#include <vector>

namespace tensorflow {
namespace multistream {

inline std::vector<const void*>* FreshMemory() {
  thread_local std::vector<const void*> fresh;
  return &fresh;
}

inline void NoteFreshMemory(const void* address) {
  // Memory that no op asks for must not pile up.
  constexpr size_t kMost = 4096;
  if (FreshMemory()->size() >= kMost) FreshMemory()->clear();
  FreshMemory()->push_back(address);
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_FRESH_MEMORY_H_
