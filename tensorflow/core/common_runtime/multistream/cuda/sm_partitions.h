// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which SMs (streaming multiprocessors) run the kernels of a group
// (TF_GPU_STREAM_GROUP_SMS)?
//
// By default any, and a kernel that fills the GPU for milliseconds makes the
// kernels of all other groups wait, whatever their priority. A CUDA green
// context is a part of a GPU's SMs; a stream that is made with it runs its
// kernels there, and is otherwise a stream of the GPU's one CUDA context: its
// memory, events, modules and library handles are those of all groups.
//
//   132 SMs, "0-3:32,4:16"
//   |-- 32: groups 0 to 3 --|-- 16: group 4 --|-- 84: all other streams --|
//
// TensorFlow makes streams with cuStreamCreate and cuStreamCreateWithPriority,
// and its calls of these two come here. A captured kernel keeps the SMs of the
// stream on which it was captured. Kernels of the null stream, and of streams
// that other libraries make, run on any SM.
//
// SMs of their own are of no use to kernels that do not reach the GPU: with 8
// streams that have work waiting, kernels of all other streams wait in CUDA's 8
// hardware queues. Hence AskForHardwareQueues.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_SM_PARTITIONS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_SM_PARTITIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"

namespace tensorflow::multistream {

// Has CUDA use as many hardware queues as it can, 32, unless the program has
// set CUDA_DEVICE_MAX_CONNECTIONS. To be called before CUDA makes its context.
void AskForHardwareQueues();

// Divides the SMs of the GPU with CUDA's number `gpu` among its `groups`
// groups. At the first call for a GPU; later calls return what the first one
// did.
//
// Errors: InvalidArgument if the GPU has too few SMs, or does not give SMs in
// such numbers; FailedPrecondition if the CUDA driver is older than 12.5;
// others are CUDA's.
absl::Status DivideSms(int gpu, int groups, absl::Span<const SmShare> shares);

// From now on this thread makes streams of group `group` of the GPU; -1: of no
// group, which is how a thread begins.
void MakeStreamsOfGroup(int gpu, int group);

// For tests: whose calls of which library's functions come here.
absl::Status RedirectStreamCreation(const std::string& library,
                                    const std::string& cuda);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_SM_PARTITIONS_H_
