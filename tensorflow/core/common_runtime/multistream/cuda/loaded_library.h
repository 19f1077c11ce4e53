// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are calls of a loaded shared library redirected? By changing the
// addresses through which it calls, not its code: entries of its import table
// (GOT), and of tables in its data. TensorFlow's libraries call CUDA's
// functions by name: libtensorflow_framework.so exports them, and looks up
// CUDA's own.
//
//   template <typename Name, typename Function> struct Counted;
//   template <typename Name, typename Result, typename... Args>
//   struct Counted<Name, Result (*)(Args...)> {
//     static inline Result (*stock)(Args...) = nullptr;
//     static Result Call(Args... args) { ++count; return stock(args...); }
//   };
//   ReplaceCalls("libuser.so", "libcuda_functions.so",
//                {TFMS_CALL_BY_NAME(Counted, cudaMalloc)});
//
// Call the original through `stock`, not by name: the runtime may be part of
// the library whose calls are redirected. If a function is replaced twice, the
// second replacement's `stock` is the first replacement.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tensorflow::multistream {

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

struct CallByName {
  const char* name;
  void* call;    // replaces the function
  void** stock;  // receives the address to call on
};

// Wrapper reads the name in import tables as Name::Text(). Where cuda.h has a
// macro for `function`, it is what the macro says.
#define TFMS_CALL_BY_NAME(Wrapper, function)                            \
  [] {                                                                  \
    struct Name {                                                       \
      static const char* Text() { return TFMS_NAME_OF(function); }      \
    };                                                                  \
    using Of = Wrapper<Name, decltype(&(function))>;                    \
    return CallByName{Name::Text(), reinterpret_cast<void*>(&Of::Call), \
                      reinterpret_cast<void**>(&Of::stock)};            \
  }()
#define TFMS_NAME_OF(function) TFMS_QUOTED(function)
#define TFMS_QUOTED(name) #name

// Redirects `library`'s calls of these functions, which the library `cuda`
// exports. Both names are prefixes of file names of loaded libraries. Returns
// how many of the functions `library` calls. Errors are LoadedLibrary's.
// Idempotent.
absl::StatusOr<int> ReplaceCalls(const std::string& library,
                                 const std::string& cuda,
                                 absl::Span<const CallByName> calls);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_LOADED_LIBRARY_H_
