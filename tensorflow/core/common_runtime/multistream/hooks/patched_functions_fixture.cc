// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Stands for a TensorFlow patched by patches/RELEASE/source, for tests without
// TensorFlow's sources: each function asks its hook, and then calls the
// function in the wheel's library. (Functions that need a GPU are left out.)

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/hooks/hook.h"
#include "tensorflow/core/common_runtime/multistream/hooks/stock_function.h"
#include "tensorflow/core/grappler/clusters/utils.h"
#include "xla/stream_executor/executor_cache.h"

namespace tensorflow {
absl::Status NewExecutor(const std::string& executor_type,
                         const LocalExecutorParams& params, const Graph& graph,
                         std::unique_ptr<Executor>* out_executor) {
  if (auto* ours = multistream::Hook<&NewExecutor>::Take()) {
    return ours(executor_type, params, graph, out_executor);
  }
  ExecutorFactory* factory = nullptr;
  TF_RETURN_IF_ERROR(ExecutorFactory::GetFactory(executor_type, &factory));
  return factory->NewExecutor(params, graph, out_executor);
}

absl::Status NewLocalExecutor(const LocalExecutorParams& params,
                              const Graph& graph, Executor** executor) {
  if (auto* ours = multistream::Hook<&NewLocalExecutor>::Take()) {
    return ours(params, graph, executor);
  }
  static const auto next = multistream::StockFunction(&NewLocalExecutor);
  return next(params, graph, executor);
}

absl::Status DeviceFactory::AddDevices(
    const SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<Device>>* devices) {
  if (auto* ours = multistream::Hook<&DeviceFactory::AddDevices>::Take()) {
    return ours(options, name_prefix, devices);
  }
  static const auto next = multistream::StockFunction(&AddDevices);
  return next(options, name_prefix, devices);
}

bool EagerContext::RunEagerOpAsFunction() const {
  if (auto* ours =
          multistream::Hook<&EagerContext::RunEagerOpAsFunction>::Take()) {
    return ours(this);
  }
  static const auto next =
      multistream::StockFunction(&EagerContext::RunEagerOpAsFunction);
  return (this->*next)();
}

void CopyTensor::ViaDMA(absl::string_view edge, DeviceContext* send_context,
                        DeviceContext* receive_context, Device* from,
                        Device* to, const AllocatorAttributes from_attributes,
                        const AllocatorAttributes to_attributes,
                        const Tensor* input, Tensor* output, int stream,
                        StatusCallback done, bool sync) {
  if (auto* ours = multistream::Hook<&CopyTensor::ViaDMA>::Take()) {
    return ours(edge, send_context, receive_context, from, to, from_attributes,
                to_attributes, input, output, stream, std::move(done), sync);
  }
  static const auto next = multistream::StockFunction(&ViaDMA);
  next(edge, send_context, receive_context, from, to, from_attributes,
       to_attributes, input, output, stream, std::move(done), sync);
}

namespace grappler {

DeviceProperties GetDeviceInfo(const DeviceNameUtils::ParsedName& device) {
  if (auto* ours = multistream::Hook<&GetDeviceInfo>::Take()) {
    return ours(device);
  }
  static const auto next = multistream::StockFunction(&GetDeviceInfo);
  return next(device);
}

}  // namespace grappler
}  // namespace tensorflow

namespace stream_executor {

absl::StatusOr<StreamExecutor*> ExecutorCache::GetOrCreate(
    int ordinal, const ExecutorFactory& factory) {
  if (auto* ours =
          tensorflow::multistream::Hook<&ExecutorCache::GetOrCreate>::Take()) {
    return ours(this, ordinal, factory);
  }
  static const auto next =
      tensorflow::multistream::StockFunction(&ExecutorCache::GetOrCreate);
  return (this->*next)(ordinal, factory);
}

}  // namespace stream_executor
