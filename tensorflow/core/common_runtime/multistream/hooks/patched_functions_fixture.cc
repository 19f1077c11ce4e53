// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Stands for a TensorFlow patched by patches/RELEASE/source, for tests without
// TensorFlow's sources: each function asks its hook, and then calls the
// function in the wheel's library. (Functions that need a GPU are left out.)

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/hooks/hook.h"
#include "tensorflow/core/common_runtime/multistream/hooks/stock_function.h"
#include "tensorflow/core/grappler/clusters/utils.h"
#include "xla/stream_executor/executor_cache.h"

namespace tensorflow {
namespace {

// The wheel's function, which this program's function of the same name
// precedes.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

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
  static auto* const next = Next<decltype(NewLocalExecutor)>(
      "_ZN10tensorflow16NewLocalExecutorERKNS_19LocalExecutorParamsERKNS_5Graph"
      "EPPNS_8ExecutorE");
  return next(params, graph, executor);
}

absl::Status DeviceFactory::AddDevices(
    const SessionOptions& options, const std::string& name_prefix,
    std::vector<std::unique_ptr<Device>>* devices) {
  if (auto* ours = multistream::Hook<&DeviceFactory::AddDevices>::Take()) {
    return ours(options, name_prefix, devices);
  }
  static auto* const next = Next<decltype(AddDevices)>(
      "_ZN10tensorflow13DeviceFactory10AddDevicesERKNS_14SessionOptionsERKNSt7_"
      "_cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPSt6vectorISt10unique_"
      "ptrINS_6DeviceESt14default_deleteISE_EESaISH_EE");
  return next(options, name_prefix, devices);
}

bool EagerContext::RunEagerOpAsFunction() const {
  if (auto* ours =
          multistream::Hook<&EagerContext::RunEagerOpAsFunction>::Take()) {
    return ours(this);
  }
  static auto* const next = Next<bool(const EagerContext*)>(
      "_ZNK10tensorflow12EagerContext20RunEagerOpAsFunctionEv");
  return next(this);
}

namespace grappler {

DeviceProperties GetDeviceInfo(const DeviceNameUtils::ParsedName& device) {
  if (auto* ours = multistream::Hook<&GetDeviceInfo>::Take()) {
    return ours(device);
  }
  static auto* const next = Next<decltype(GetDeviceInfo)>(
      "_ZN10tensorflow8grappler13GetDeviceInfoERKN3tsl15DeviceNameUtils10Parsed"
      "NameE");
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
