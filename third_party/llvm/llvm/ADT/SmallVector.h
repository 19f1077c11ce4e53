// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// As ArrayRef.h, which declares it, too.

#ifndef THIRD_PARTY_LLVM_LLVM_ADT_SMALLVECTOR_H_
#define THIRD_PARTY_LLVM_LLVM_ADT_SMALLVECTOR_H_

#include "llvm/ADT/ArrayRef.h"

#endif  // THIRD_PARTY_LLVM_LLVM_ADT_SMALLVECTOR_H_
