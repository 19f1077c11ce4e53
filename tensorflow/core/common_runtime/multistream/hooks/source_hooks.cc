// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Which functions does TensorFlow call instead of its own, if both are built
// from source? TensorFlow's patched functions ask the hooks (hook.h) that are
// set here.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"
#include "tensorflow/core/common_runtime/multistream/cuda/generated_kernels.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/common_runtime/multistream/cuda/recorded_callbacks.h"
#include "tensorflow/core/common_runtime/multistream/cuda/stream_executors.h"
#include "tensorflow/core/common_runtime/multistream/cuda/xla_graphs.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"
#include "tensorflow/core/common_runtime/multistream/hooks/executor_choice.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"
#include "tensorflow/core/common_runtime/multistream/hooks/hook.h"
#include "tensorflow/core/common_runtime/multistream/hooks/replaced_symbols.h"
#include "tensorflow/core/grappler/clusters/utils.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "third_party/gpus/cuda/include/cuda_runtime_api.h"
#include "tsl/profiler/lib/profiler_lock.h"
#include "xla/stream_executor/executor_cache.h"

// Declared as in TensorFlow's header, which would need MLIR's headers.
namespace mlir::kernel_gen::tf_framework {
extern "C" void _mlir_ciface_tf_launch_kernel(void* context, void* module,
                                              char* name, intptr_t grid_x,
                                              intptr_t grid_y, intptr_t grid_z,
                                              intptr_t block_x,
                                              intptr_t block_y,
                                              intptr_t block_z, void** params);
}  // namespace mlir::kernel_gen::tf_framework

namespace tensorflow::multistream {

// Always OK: the patched functions call the hooks whatever the library order.
const absl::Status& CheckReplacedSymbols() {
  static const auto* status = new absl::Status;
  return *status;
}

namespace {

using LocalExecutorHook = Hook<&NewLocalExecutor>;
using AddDevicesHook = Hook<&DeviceFactory::AddDevices>;
using CopyHook = Hook<&CopyTensor::ViaDMA>;
using DeviceInfoHook = Hook<&grappler::GetDeviceInfo>;
using EagerOpsHook = Hook<&EagerContext::RunEagerOpAsFunction>;
using EventManagerHook = Hook<&EventMgrFactory::GetEventMgr>;
using ThenExecuteHook = Hook<&EventMgr::ThenExecute>;
using ExecutorHook = Hook<&se::ExecutorCache::GetOrCreate>;
using ContextHook = Hook<kCreateContext>;
using LaunchHook =
    Hook<&mlir::kernel_gen::tf_framework::_mlir_ciface_tf_launch_kernel>;
using CallbackHook = Hook<&cudaStreamAddCallback>;
using ProfilerHook = Hook<&tsl::profiler::ProfilerLock::HasActiveSession>;

absl::StatusOr<se::gpu::CudaContext*> CreateContextForHook(int gpu,
                                                           CUdevice device) {
  return CreateContext(gpu, device, [gpu, device] {
    return CallCreateContext(&ContextHook::Stock, gpu, device);
  });
}

void SetExecutorHooks() {
  Hook<&NewExecutor>::Set(&NewExecutorOnGroups);
  LocalExecutorHook::Set([](auto... arguments) {
    return NewLocalExecutorOnGroups(arguments..., &LocalExecutorHook::Stock);
  });
  AddDevicesHook::Set([](const SessionOptions& options,
                         const std::string& name_prefix,
                         std::vector<std::unique_ptr<Device>>* devices) {
    LookAtEnvironmentOnce();
    return AddDevices(options, [&] {
      return AddDevicesHook::Stock(options, name_prefix, devices);
    });
  });
  EagerOpsHook::Set([](const EagerContext* context) {
    return RunsEagerOpsAsFunctions(
        [context] { return EagerOpsHook::Stock(context); });
  });
  CopyHook::Set([](absl::string_view edge, DeviceContext* send_context,
                   DeviceContext* receive_context, Device* from, Device* to,
                   AllocatorAttributes from_attributes,
                   AllocatorAttributes to_attributes, const Tensor* input,
                   Tensor* output, int stream, StatusCallback done, bool sync) {
    CopyBetweenMemories({from, send_context, from_attributes.on_host()},
                        {to, receive_context, to_attributes.on_host()}, *input,
                        output, std::move(done), [&](StatusCallback then) {
                          CopyHook::Stock(edge, send_context, receive_context,
                                          from, to, from_attributes,
                                          to_attributes, input, output, stream,
                                          std::move(then), sync);
                        });
  });
  DeviceInfoHook::Set([](const DeviceNameUtils::ParsedName& device) {
    return DeviceInfo(device,
                      [&device] { return DeviceInfoHook::Stock(device); });
  });
}

void SetStreamHooks() {
  EventManagerHook::Set([](EventMgrFactory* factory,
                           se::StreamExecutor* executor,
                           const GPUOptions& options) {
    return GetEventManager(executor, [&](se::StreamExecutor* of) {
      return EventManagerHook::Stock(factory, of, options);
    });
  });
  ThenExecuteHook::Set(
      [](EventMgr* events, se::Stream* stream, std::function<void()> f) {
        ThenExecute(events, stream, std::move(f),
                    [stream](EventMgr* manager, std::function<void()> later) {
                      ThenExecuteHook::Stock(manager, stream, std::move(later));
                    });
      });
  ExecutorHook::Set([](se::ExecutorCache* cache, int ordinal,
                       const se::ExecutorCache::ExecutorFactory& factory) {
    return GetOrCreateExecutor(cache, ordinal, factory, [&] {
      return ExecutorHook::Stock(cache, ordinal, factory);
    });
  });
  ContextHook::Set(&AsCreateContext<&CreateContextForHook>);
  LaunchHook::Set([](auto... arguments) {
    LaunchKernel(arguments..., &LaunchHook::Stock);
  });
  // Hooked where XLA calls it.
  ProfilerHook::Set([] {
    return HasProfiler(&tsl::profiler::ProfilerLock::HasActiveSession);
  });
  CallbackHook::Set([](cudaStream_t stream, cudaStreamCallback_t callback,
                       void* data, unsigned int flags) {
    // KeptCallback's declaration does without CUDA's header.
    const auto plain = reinterpret_cast<void (*)(void*, int, void*)>(callback);
    return KeptCallback(stream, plain, data)
               ? cudaSuccess
               : cudaStreamAddCallback(stream, callback, data, flags);
  });
}

template <typename Parameters, typename Op>
void SetTableHook() {
  using FindHook = Hook<&AutotuneTable<Parameters, Op>::Find>;
  FindHook::Set([](const AutotuneTable<Parameters, Op>* table,
                   const Parameters& parameters, AutotuneEntry<Op>* entry) {
    if (!FindHook::Stock(table, parameters, entry)) return false;
    UseRunnerOfGroup(entry);
    return true;
  });
}

const bool hooks_are_set = [] {
  SetExecutorHooks();
  SetStreamHooks();
  SetTableHook<ConvParameters, se::dnn::ConvOp>();
  SetTableHook<ConvParameters, se::dnn::FusedConvOp>();
  SetTableHook<MatmulParameters, se::dnn::FusedMatmulOp>();
  return true;
}();

}  // namespace
}  // namespace tensorflow::multistream
