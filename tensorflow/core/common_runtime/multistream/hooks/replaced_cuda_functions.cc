// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Which functions of TensorFlow's CUDA code does the runtime replace, if it is
// a library that the process loads before TensorFlow? exports.lds lists them.

#include "tensorflow/core/common_runtime/multistream/hooks/replaced_cuda_functions.h"

#include <dlfcn.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"
#include "tensorflow/core/common_runtime/multistream/cuda/generated_kernels.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/common_runtime/multistream/cuda/recorded_callbacks.h"
#include "tensorflow/core/common_runtime/multistream/cuda/stream_executors.h"
#include "tensorflow/core/common_runtime/multistream/cuda/xla_graphs.h"
#include "tensorflow/core/common_runtime/multistream/hooks/stock_function.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/executor_cache.h"

#define TFMS_THEN_EXECUTE                                             \
  "_ZN10tensorflow8EventMgr11ThenExecuteEPN15stream_executor6StreamE" \
  "St8functionIFvvEE"

#define TFMS_HAS_ACTIVE_SESSION \
  "_ZN3tsl8profiler12ProfilerLock16HasActiveSessionEv"

namespace tensorflow {
namespace multistream {
namespace {

template <typename Parameters, typename Op>
bool FindForGroup(const AutotuneTable<Parameters, Op>* table,
                  const Parameters& parameters, AutotuneEntry<Op>* entry) {
  static const auto stock = StockFunction(&AutotuneTable<Parameters, Op>::Find);
  if (!(table->*stock)(parameters, entry)) return false;
  UseRunnerOfGroup(entry);
  return true;
}

}  // namespace

// TensorFlow's header defines EventMgr::ThenExecute inline, so that we can only
// define it under its linker name.
void ThenExecuteInItsPlace(EventMgr* events, se::Stream* stream,
                           std::function<void()> f) __asm__(TFMS_THEN_EXECUTE);
void ThenExecuteInItsPlace(EventMgr* events, se::Stream* stream,
                           std::function<void()> f) {
  static const auto stock = StockFunction(&ThenExecuteInItsPlace);
  ThenExecute(events, stream, std::move(f),
              [stream](EventMgr* manager, std::function<void()> callback) {
                stock(manager, stream, std::move(callback));
              });
}

// ProfilerLock::HasActiveSession, whose header is elsewhere in some releases.
bool HasProfilerInItsPlace() __asm__(TFMS_HAS_ACTIVE_SESSION);
bool HasProfilerInItsPlace() {
  static const auto stock = StockFunction(&HasProfilerInItsPlace);
  return HasProfiler(stock);
}

absl::StatusOr<se::gpu::CudaContext*> CreateContextInItsPlace(int gpu,
                                                              CUdevice device) {
  return CreateContext(gpu, device, [gpu, device] {
    static const auto stock = StockFunction(kCreateContext);
    return CallCreateContext(stock, gpu, device);
  });
}

}  // namespace multistream

EventMgr* EventMgrFactory::GetEventMgr(se::StreamExecutor* executor,
                                       const GPUOptions& options) {
  static const auto stock =
      multistream::StockFunction(&EventMgrFactory::GetEventMgr);
  return multistream::GetEventManager(executor, [&](se::StreamExecutor* of) {
    return (this->*stock)(of, options);
  });
}

template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::ConvOp>::Find(
    const ConvParameters& params,
    AutotuneEntry<se::dnn::ConvOp>* config) const {
  return multistream::FindForGroup(this, params, config);
}

template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::FusedConvOp>::Find(
    const ConvParameters& params,
    AutotuneEntry<se::dnn::FusedConvOp>* config) const {
  return multistream::FindForGroup(this, params, config);
}

template <>
bool multistream::AutotuneTable<MatmulParameters, se::dnn::FusedMatmulOp>::Find(
    const MatmulParameters& params,
    AutotuneEntry<se::dnn::FusedMatmulOp>* config) const {
  return multistream::FindForGroup(this, params, config);
}

}  // namespace tensorflow

namespace stream_executor {

absl::StatusOr<StreamExecutor*> ExecutorCache::GetOrCreate(
    int ordinal, const ExecutorFactory& factory) {
  return tensorflow::multistream::GetOrCreateExecutor(
      this, ordinal, factory, [&] {
        static const auto stock =
            tensorflow::multistream::StockFunction(&ExecutorCache::GetOrCreate);
        return (this->*stock)(ordinal, factory);
      });
}

}  // namespace stream_executor

TFMS_REPLACED_CONTEXT_FUNCTIONS(
    &tensorflow::multistream::CreateContextInItsPlace)

extern "C" void _mlir_ciface_tf_launch_kernel(void* context, void* module,
                                              char* name, intptr_t grid_x,
                                              intptr_t grid_y, intptr_t grid_z,
                                              intptr_t block_x,
                                              intptr_t block_y,
                                              intptr_t block_z, void** params) {
  static const auto stock =
      tensorflow::multistream::StockFunction(&_mlir_ciface_tf_launch_kernel);
  tensorflow::multistream::LaunchKernel(context, module, name, grid_x, grid_y,
                                        grid_z, block_x, block_y, block_z,
                                        params, stock);
}

// Declared without CUDA's header: stream handle, callback of handle and result,
// user data, and flags.
extern "C" int cudaStreamAddCallback(void* stream,
                                     void (*callback)(void*, int, void*),
                                     void* data, unsigned int flags) {
  if (tensorflow::multistream::KeptCallback(stream, callback, data)) return 0;
  static const auto stock = reinterpret_cast<decltype(&cudaStreamAddCallback)>(
      dlsym(RTLD_NEXT, "cudaStreamAddCallback"));
  // 3: cudaErrorInitializationError, if no library has the function.
  return stock == nullptr ? 3 : stock(stream, callback, data, flags);
}
