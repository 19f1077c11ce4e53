// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// TensorFlow's autotune tables: the algorithm chosen for each convolution or
// matrix product.

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
