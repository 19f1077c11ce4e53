// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Which functions of TensorFlow's does the runtime replace, if it is a library
// that the process loads before TensorFlow? The functions here and in
// replaced_cuda_functions.cc; exports.lds lists them.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"
#include "tensorflow/core/common_runtime/multistream/hooks/executor_choice.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"
#include "tensorflow/core/common_runtime/multistream/hooks/stock_function.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace {

const bool looked_at_environment = [] {
  multistream::LookAtEnvironmentOnce();
  return true;
}();

}  // namespace

absl::Status NewExecutor(const std::string& executor_type,
                         const LocalExecutorParams& params, const Graph& graph,
                         std::unique_ptr<Executor>* out_executor) {
  return multistream::NewExecutorOnGroups(executor_type, params, graph,
                                          out_executor);
}

absl::Status NewLocalExecutor(const LocalExecutorParams& params,
                              const Graph& graph, Executor** executor) {
  static const auto stock = multistream::StockFunction(&NewLocalExecutor);
  return multistream::NewLocalExecutorOnGroups(params, graph, executor, stock);
}

absl::Status DeviceFactory::AddDevices(
    const SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<Device>>* devices) {
  static const auto stock = multistream::StockFunction(&AddDevices);
  return multistream::AddDevices(
      options, [&] { return stock(options, name_prefix, devices); });
}

class EagerContext;

// EagerContext::RunEagerOpAsFunction() const. (TensorFlow's header of it
// includes one that the wheel does not have.)
bool RunEagerOpAsFunction(const EagerContext* context) asm(
    "_ZNK10tensorflow12EagerContext20RunEagerOpAsFunctionEv");

bool RunEagerOpAsFunction(const EagerContext* context) {
  return multistream::RunsEagerOpsAsFunctions([context] {
    static const auto stock = multistream::StockFunction(&RunEagerOpAsFunction);
    return stock(context);
  });
}

void CopyTensor::ViaDMA(absl::string_view edge, DeviceContext* send_context,
                        DeviceContext* receive_context, Device* from,
                        Device* to, const AllocatorAttributes from_attributes,
                        const AllocatorAttributes to_attributes,
                        const Tensor* input, Tensor* output, int stream,
                        StatusCallback done, bool sync) {
  multistream::CopyBetweenMemories(
      {from, send_context, from_attributes.on_host()},
      {to, receive_context, to_attributes.on_host()}, *input, output,
      std::move(done), [&](StatusCallback then) {
        static const auto stock = multistream::StockFunction(&ViaDMA);
        stock(edge, send_context, receive_context, from, to, from_attributes,
              to_attributes, input, output, stream, std::move(then), sync);
      });
}

namespace grappler {

DeviceProperties GetDeviceInfo(const DeviceNameUtils::ParsedName& device) {
  return multistream::DeviceInfo(device, [&device] {
    static const auto stock = multistream::StockFunction(&GetDeviceInfo);
    return stock(device);
  });
}

}  // namespace grappler
}  // namespace tensorflow
