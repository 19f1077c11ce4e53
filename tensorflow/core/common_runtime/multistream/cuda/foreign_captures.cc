// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/foreign_captures.h"

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/loaded_library.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "third_party/gpus/cuda/include/cuda_runtime_api.h"

namespace tensorflow::multistream {
namespace {

using ExchangeMode = decltype(&cuThreadExchangeStreamCaptureMode);
ExchangeMode exchange_mode = nullptr;

template <typename Name, typename Function>
struct Unconcerned;
template <typename Name, typename Result, typename... Args>
struct Unconcerned<Name, Result (*)(Args...)> {
  static inline Result (*stock)(Args...) = nullptr;
  static Result Call(Args... args) {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    const bool exchanged = exchange_mode(&mode) == CUDA_SUCCESS;
    const Result result = stock(args...);
    if (exchanged) exchange_mode(&mode);
    return result;
  }
};

}  // namespace

absl::StatusOr<int> IgnoreForeignCapturesIn(const std::string& library,
                                            const std::string& cuda) {
  static const CallByName kCalls[] = {
      TFMS_CALL_BY_NAME(Unconcerned, cudaEventCreate),
      TFMS_CALL_BY_NAME(Unconcerned, cudaEventCreateWithFlags),
      TFMS_CALL_BY_NAME(Unconcerned, cudaEventDestroy),
      TFMS_CALL_BY_NAME(Unconcerned, cudaEventSynchronize),
      TFMS_CALL_BY_NAME(Unconcerned, cudaFree),
      TFMS_CALL_BY_NAME(Unconcerned, cudaMalloc),
      TFMS_CALL_BY_NAME(Unconcerned, cudaStreamQuery),
      TFMS_CALL_BY_NAME(Unconcerned, cuEventCreate),
      TFMS_CALL_BY_NAME(Unconcerned, cuEventDestroy),
      TFMS_CALL_BY_NAME(Unconcerned, cuEventQuery),
      TFMS_CALL_BY_NAME(Unconcerned, cuEventSynchronize),
      TFMS_CALL_BY_NAME(Unconcerned, cuGraphExecDestroy),
      TFMS_CALL_BY_NAME(Unconcerned, cuGraphInstantiateWithFlags),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemAllocManaged),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemAlloc),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemFreeHost),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemFree),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemGetInfo),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemHostAlloc),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemHostRegister),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemHostUnregister),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemcpyDtoH),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemcpyHtoD),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemsetD32),
      TFMS_CALL_BY_NAME(Unconcerned, cuMemsetD8),
      TFMS_CALL_BY_NAME(Unconcerned, cuModuleLoadData),
      TFMS_CALL_BY_NAME(Unconcerned, cuModuleLoadDataEx),
      TFMS_CALL_BY_NAME(Unconcerned, cuModuleLoadFatBinary),
      TFMS_CALL_BY_NAME(Unconcerned, cuModuleUnload),
      TFMS_CALL_BY_NAME(Unconcerned, cuStreamCreate),
      TFMS_CALL_BY_NAME(Unconcerned, cuStreamCreateWithPriority),
      TFMS_CALL_BY_NAME(Unconcerned, cuStreamDestroy),
      TFMS_CALL_BY_NAME(Unconcerned, cuStreamQuery),
      TFMS_CALL_BY_NAME(Unconcerned, cuStreamSynchronize),
  };
  TF_ASSIGN_OR_RETURN(const LoadedLibrary from, LoadedLibrary::Find(cuda));
  exchange_mode = reinterpret_cast<ExchangeMode>(
      from.Exported("cuThreadExchangeStreamCaptureMode"));
  if (exchange_mode == nullptr) {
    return absl::NotFoundError(
        absl::StrCat(cuda, " has no cuThreadExchangeStreamCaptureMode"));
  }
  return ReplaceCalls(library, cuda, kCalls);
}

void IgnoreForeignCapturesInTensorFlow() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    constexpr char kFramework[] = "libtensorflow_framework.so";
    for (const char* library :
         {kFramework, "libtensorflow_cc.so", "libtensorflow_multistream.so"}) {
      const absl::StatusOr<int> calls =
          IgnoreForeignCapturesIn(library, kFramework);
      // Ours may be a part of TensorFlow's.
      if (calls.ok() || absl::IsNotFound(calls.status())) continue;
      LOG(INFO) << "Multi-stream: while other code of this process captures a "
                   "CUDA stream in the global mode, calls of "
                << library << " may fail: " << calls.status().message();
    }
  });
}

}  // namespace tensorflow::multistream
