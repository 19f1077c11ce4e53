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
// Stands in for LLVM's header, which some releases' wheels do not have and
// their stream_executor/gpu/tma_metadata.h includes: enough for code that
// includes that header, and neither makes nor reads what it declares.

#ifndef THIRD_PARTY_LLVM_LLVM_ADT_ARRAYREF_H_
#define THIRD_PARTY_LLVM_LLVM_ADT_ARRAYREF_H_

namespace llvm {

template <typename T>
class SmallVector;

template <typename T>
class ArrayRef {
 public:
  ArrayRef(const SmallVector<T>&) {}
};

template <typename T>
class SmallVector {};

}  // namespace llvm

#endif  // THIRD_PARTY_LLVM_LLVM_ADT_ARRAYREF_H_
