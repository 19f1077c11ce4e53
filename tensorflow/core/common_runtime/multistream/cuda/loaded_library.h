// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are calls of a loaded shared library redirected? Its code is not changed.
// We change the addresses through which it calls: entries of its import table
// (GOT), which the dynamic linker has filled in, and of tables in its data.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tensorflow {
namespace multistream {

// The library must stay loaded.
class LoadedLibrary {
 public:
  // An imported function, and its replacement.
  struct Import {
    const char* name;
    void* with;
  };

  // The first library whose file name begins with `name` ("libcuda.so").
  // NotFound if no such library is loaded, Unimplemented on machines other than
  // x86-64 with glibc.
  static absl::StatusOr<LoadedLibrary> Find(const std::string& name);

  // The library's own export, not one of its dependencies'; nullptr if it has
  // none of that name.
  void* Exported(const char* name) const;

  // Whether an address is in the library's code, or its writable data.
  bool HasCode(const void* address) const;
  bool HasData(const void* address) const;

  // Replaces entries of the library's import table. Returns how many entries
  // have a replacement now; Internal if an entry is not writable. Idempotent.
  absl::StatusOr<int> Replace(absl::Span<const Import> imports) const;

  // Writes an address into the library's data or import table, safely while
  // other threads call through the entry.
  static bool Store(void** entry, void* address);

 private:
  struct Segment {
    uintptr_t begin;
    uintptr_t end;
    bool is_code;
    bool is_writable;
  };

  std::string path_;
  uintptr_t base_ = 0;
  const void* dynamic_ = nullptr;
  std::vector<Segment> segments_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_
