// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"

#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow::multistream {

MakeKernel MakeKernelOrHostKernel(const LocalExecutorParams& params) {
  return [make = params.create_kernel, device = params.device,
          functions = params.function_library](
             const std::shared_ptr<const NodeProperties>& node,
             OpKernel** kernel) {
    if (!HasNodeAttr(node->node_def, kRunsOnHostAttr)) {
      return make(node, kernel);
    }
    AllocatorAttributes on_host;
    on_host.set_on_host(true);
    return CreateOpKernel(DeviceType(DEVICE_CPU), device,
                          device->GetAllocator(on_host), functions,
                          device->resource_manager(), node,
                          functions == nullptr ? TF_GRAPH_DEF_VERSION
                                               : functions->graph_def_version(),
                          kernel);
  };
}

}  // namespace tensorflow::multistream
