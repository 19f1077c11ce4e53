// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which cuDNN runner of a convolution does a group use? hooks/ asks, in place
// of AutotuneMap::Find, which TensorFlow's kernels call.
//
// TensorFlow's tables keep for each shape, forever, the algorithm chosen for a
// convolution and the runner that cuDNN made for it. A runner belongs to one
// StreamExecutor, and each group has its own. So every group gets its own
// runner for the table's algorithm. The groups' runners are in an LRU: an op
// keeps its evicted runner alive, and the next lookup makes another one.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_

#include <cstddef>

#include "tensorflow/core/kernels/gpu_utils.h"
#include "tensorflow/core/util/autotune_maps/conv_parameters.h"

namespace tensorflow::multistream {

// TensorFlow's autotune tables: the algorithm chosen for each convolution or
// matrix product.
template <typename Parameters, typename Op>
using AutotuneTable = AutotuneMap<Parameters, AutotuneEntry<Op>,
                                  internal::AutotuneMapHasher<Parameters>>;

// Most LRU entries for a kind of operation, all groups together. Half as many
// are certain to stay: 2,048 shapes on 16 groups. If more shapes are used in
// turn, each use makes its runner again.
inline constexpr size_t kMostConvRunners = 65536;

// Entries in the LRUs of all kinds of operations.
size_t ConvRunnersKept();

// Replaces an entry of TensorFlow's table by that of this thread's group. Op:
// se::dnn::ConvOp, FusedConvOp or FusedMatmulOp.
template <typename Op>
void UseRunnerOfGroup(AutotuneEntry<Op>* entry);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_
