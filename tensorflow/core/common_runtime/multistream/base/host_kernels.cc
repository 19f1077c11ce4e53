// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"

#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {

absl::Status CreateKernel(const DeviceType& type, Device* device,
                          FunctionLibraryRuntime* functions,
                          const std::shared_ptr<const NodeProperties>& node,
                          OpKernel** kernel) {
  AllocatorAttributes on_host;
  on_host.set_on_host(true);
  return CreateOpKernel(type, device, device->GetAllocator(on_host), functions,
                        device->resource_manager(), node,
                        functions == nullptr ? TF_GRAPH_DEF_VERSION
                                             : functions->graph_def_version(),
                        kernel);
}

MakeKernel MakeKernelOrHostKernel(const LocalExecutorParams& params) {
  return [make = params.create_kernel, device = params.device,
          functions = params.function_library](
             const std::shared_ptr<const NodeProperties>& node,
             OpKernel** kernel) {
    return HasNodeAttr(node->node_def, kRunsOnHostAttr)
               ? CreateKernel(DeviceType(DEVICE_CPU), device, functions, node,
                              kernel)
               : make(node, kernel);
  };
}

}  // namespace tensorflow::multistream
