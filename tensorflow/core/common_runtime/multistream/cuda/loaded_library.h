// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is what a loaded shared library calls exchanged for something else? Its
// code stays as it is. What can be changed are the addresses through which it
// calls: those of its import table, which the dynamic linker has filled in, and
// those of tables in its own data.

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

// It must stay loaded.
class LoadedLibrary {
 public:
  // A function that a library calls by its name, and what it is to call.
  struct Import {
    const char* name;
    void* with;
  };

  // The first library whose file name begins with `name` ("libcuda.so").
  // NotFound if no such library is loaded, Unimplemented on machines other than
  // x86-64 with glibc.
  static absl::StatusOr<LoadedLibrary> Find(const std::string& name);

  // Of the library itself, not of what it depends on; nullptr if it exports no
  // function of that name.
  void* Exported(const char* name) const;

  // Whether an address is in the library's code, or in its writable data.
  bool HasCode(const void* address) const;
  bool HasData(const void* address) const;

  // Exchanges what the library's import table has. Returns how many entries
  // have it now; Internal if one could not be written to. Idempotent.
  absl::StatusOr<int> Replace(absl::Span<const Import> imports) const;

  // Writes an address into the library's data or import table, where other
  // threads may be calling through it.
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
