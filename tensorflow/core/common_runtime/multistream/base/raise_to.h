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

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_

#include <atomic>

namespace tensorflow {
namespace multistream {

// Makes `highest` at least `value`, whatever others raise it to meanwhile.
template <typename T>
void RaiseTo(T value, std::atomic<T>* highest) {
  T seen = highest->load(std::memory_order_relaxed);
  while (seen < value &&
         !highest->compare_exchange_weak(seen, value, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
  }
}

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RAISE_TO_H_
