// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How are TensorFlow's calls of CUDA functions redirected to ours? TensorFlow's
// libraries call CUDA's functions by name: libtensorflow_framework.so exports
// them, and looks up CUDA's own. We replace the entries of the caller's import
// table (loaded_library.h):
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
// the library whose calls are redirected.

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
  void* call;    // replaces the function
  void** stock;  // receives the original's address
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
