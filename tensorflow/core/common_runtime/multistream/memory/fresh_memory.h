// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which memory has been allocated on this thread since an op began? Group
// allocators add addresses and OpAccesses reads them, for the sanitizer: an op
// has written an output whose memory was allocated since the op began.

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
  // Each op clears the list. Bound it for threads that launch none.
  constexpr size_t kMost = 4096;
  if (FreshMemory()->size() >= kMost) FreshMemory()->clear();
  FreshMemory()->push_back(address);
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_MEMORY_FRESH_MEMORY_H_
