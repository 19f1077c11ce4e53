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
// Tables in which TensorFlow's kernels find what they know of a convolution or
// a matrix product.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_AUTOTUNE_TABLES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_AUTOTUNE_TABLES_H_

#include "tensorflow/core/kernels/gpu_utils.h"
#include "tensorflow/core/util/autotune_maps/conv_parameters.h"

namespace tensorflow {
namespace multistream {

template <typename Parameters, typename Op>
using AutotuneTable = AutotuneMap<Parameters, AutotuneEntry<Op>,
                                  internal::AutotuneMapHasher<Parameters>>;

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_HOOKS_AUTOTUNE_TABLES_H_
