// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do calls of CUDA's come to functions of ours? TensorFlow's libraries call
// CUDA's functions by name, which one of them has (libtensorflow_framework.so
// looks CUDA's own up). What is in the calling library's import table is
// exchanged (loaded_library.h):
//
//   template <typename Name, typename Function> struct Counted;
//   template <typename Name, typename Result, typename... Args>
//   struct Counted<Name, Result (*)(Args...)> {
//     static inline Result (*stock)(Args...) = nullptr;
//     static Result Call(Args... args) { ++count; return stock(args...); }
//   };
//   ReplaceCalls("libuser.so", "libcuda_functions.so",
//                {TFMS_CALL_BY_NAME(Counted, "cudaMalloc", cudaMalloc)});
//
// `stock` is not called by its name, since the runtime may be a part of the
// library whose calls are exchanged.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace multistream {

struct CallByName {
  const char* name;
  void* call;    // in its place
  void** stock;  // where it is to be kept
};

// `name`: as in import tables; cuda.h makes macros of some functions. Wrapper's
// Name has it, too, as Text().
#define TFMS_CALL_BY_NAME(Wrapper, name, function)              \
  [] {                                                          \
    struct Name {                                               \
      static const char* Text() { return name; }                \
    };                                                          \
    using Of = Wrapper<Name, decltype(&(function))>;            \
    return CallByName{name, reinterpret_cast<void*>(&Of::Call), \
                      reinterpret_cast<void**>(&Of::stock)};    \
  }()

// From now on the loaded library `library` calls what is in the place of these
// functions, which the library `cuda` has: both by how their file names begin.
// Returns how many of them `library` calls. Errors are those of LoadedLibrary.
// Idempotent.
inline absl::StatusOr<int> ReplaceCalls(const std::string& library,
                                        const std::string& cuda,
                                        absl::Span<const CallByName> calls) {
  TF_ASSIGN_OR_RETURN(const LoadedLibrary found, LoadedLibrary::Find(library));
  TF_ASSIGN_OR_RETURN(const LoadedLibrary from, LoadedLibrary::Find(cuda));
  std::vector<LoadedLibrary::Import> imports;
  for (const CallByName& it : calls) {
    void* const stock = from.Exported(it.name);
    if (stock == nullptr) continue;
    *it.stock = stock;
    imports.push_back({it.name, it.call});
  }
  return found.Replace(imports);
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CALLS_BY_NAME_H_
