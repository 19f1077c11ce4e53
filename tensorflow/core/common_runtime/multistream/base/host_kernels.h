// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does an op of a GPU run on the host, although TensorFlow's kernel for the
// GPU launches work there? With TensorFlow's kernel for the CPU, whose inputs
// and outputs are in host memory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_HOST_KERNELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_HOST_KERNELS_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_properties.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

// The node has this, and says that all its inputs and outputs are on the host
// (`_input_hostmem` and `_output_hostmem`).
inline constexpr char kRunsOnHostAttr[] = "_multi_stream_runs_on_host";

using MakeKernel = std::function<absl::Status(
    const std::shared_ptr<const NodeProperties>&, OpKernel**)>;

// Makes the kernel that is registered for `type`, to run on `device`.
absl::Status CreateKernel(const DeviceType& type, Device* device,
                          FunctionLibraryRuntime* functions,
                          const std::shared_ptr<const NodeProperties>& node,
                          OpKernel** kernel);

// `params.create_kernel`, but a node with kRunsOnHostAttr gets the kernel for
// the CPU.
MakeKernel MakeKernelOrHostKernel(const LocalExecutorParams& params);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_HOST_KERNELS_H_
