// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which runner of a convolution does a group use? `attach` asks, in the place
// of AutotuneMap::Find, where TensorFlow's kernels look.
//
// TensorFlow keeps what it has found out about a convolution, and the runner
// that cuDNN made for it, in tables of the process. A runner belongs to one
// StreamExecutor, and each group has its own: with this, every group gets a
// runner of its own for the algorithm in the table, which is the same for all.
// TensorFlow's tables have an entry for each shape for ever. Of the groups'
// runners, those that have not been used for long are dropped: an op that has
// one keeps it alive, and who wants it again gets another for the same
// algorithm.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_

#include <cstddef>

#include "tensorflow/core/kernels/gpu_utils.h"

namespace tensorflow {
namespace multistream {

// Of each kind of operation, for all groups together, at most so many entries
// are kept, and half as many for certain: 2,048 shapes on 16 groups. Beyond
// that, what is used in turn is made again each time.
inline constexpr size_t kMostConvRunners = 65536;

// Entries that are kept, of all kinds.
size_t ConvRunnersKept();

// Makes an entry that TensorFlow has found in its table one of this thread's
// group. Op: se::dnn::ConvOp, FusedConvOp or FusedMatmulOp.
template <typename Op>
void UseRunnerOfGroup(AutotuneEntry<Op>* entry);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_CONV_RUNNERS_H_
