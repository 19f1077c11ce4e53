// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Replaced functions that are members of TensorFlow's templates. Callers must
// include this file, or the compiler instantiates TensorFlow's version.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_CUDA_FUNCTIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_CUDA_FUNCTIONS_H_

#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"

namespace tensorflow {

template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::ConvOp>::Find(
    const ConvParameters& params, AutotuneEntry<se::dnn::ConvOp>* config) const;
template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::FusedConvOp>::Find(
    const ConvParameters& params,
    AutotuneEntry<se::dnn::FusedConvOp>* config) const;
template <>
bool multistream::AutotuneTable<MatmulParameters, se::dnn::FusedMatmulOp>::Find(
    const MatmulParameters& params,
    AutotuneEntry<se::dnn::FusedMatmulOp>* config) const;

}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_CUDA_FUNCTIONS_H_
