/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// Which function of TensorFlow's does one of ours have the place of? The next
// one of the same name: of the name that the linker has for ours, which says
// Abseil's release, too, where a parameter has a type of Abseil's.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_

#include <dlfcn.h>

#include <cstring>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {

// `ours`: a function, or a member function that is not virtual. Returns what
// it has the place of, to be called as it is.
template <typename Function>
Function StockFunction(Function ours) {
  // Of a member function, too, the first word is the address.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_STOCK_FUNCTION_H_
