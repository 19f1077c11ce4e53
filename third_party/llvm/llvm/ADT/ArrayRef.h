// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
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
