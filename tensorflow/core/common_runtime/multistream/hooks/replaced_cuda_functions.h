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
// Functions in TensorFlow's place that are members of its templates: who calls
// them includes this file, or the compiler makes TensorFlow's again.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_CUDA_FUNCTIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_REPLACED_CUDA_FUNCTIONS_H_

#include "tensorflow/core/common_runtime/multistream/hooks/autotune_tables.h"

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
