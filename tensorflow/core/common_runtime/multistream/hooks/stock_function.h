// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which function of TensorFlow's does a function of ours replace? The next one
// with the same linker name (RTLD_NEXT). We ask the linker for the name because
// Abseil's release is part of the mangled name of Abseil's types.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_

#include <dlfcn.h>

#include <cstring>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {

// `ours`: a function, or a member function that is not virtual. Returns the
// function that `ours` replaces, to be called like `ours`.
template <typename Function>
Function StockFunction(Function ours) {
  // The first word is the address, for member functions, too.
  void* address;
  static_assert(sizeof(ours) >= sizeof(address));
  std::memcpy(&address, &ours, sizeof(address));
  Dl_info info;
  const bool named = dladdr(address, &info) != 0 && info.dli_sname != nullptr &&
                     info.dli_saddr == address;
  void* stock = named ? dlsym(RTLD_NEXT, info.dli_sname) : nullptr;
  if (stock == nullptr) {
    LOG(FATAL) << "Multi-stream: TensorFlow has no "
               << (named ? info.dli_sname : "function of a name that was lost")
               << ", which the runtime replaces. It was built for another "
                  "release of TensorFlow";
  }
  std::memcpy(&ours, &stock, sizeof(stock));
  return ours;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_
